"""What `options.toml` describes is what commands have."""

import inspect
from importlib import import_module

import pytest

from manyheads.cli.main import VERBS, load_verb
from manyheads.cli.options_table import TABLE


def named(verb: str) -> set[str]:
    """Name the parameters of a command, and of those below it."""
    command = load_verb(verb)
    below = getattr(command, "commands", {"": command})
    return {each.name for own in below.values() for each in own.params}


@pytest.mark.parametrize("words", [words for words in TABLE if words != "*"])
def test_a_description_is_of_a_parameter(words: str) -> None:
    """One that was renamed would be described in vain."""
    assert set(TABLE[words]) - {"about"} <= named(words.split()[0])


def test_what_all_have_is_had() -> None:
    """A shared description is used by a command that says nothing else."""
    for name in TABLE["*"]:
        assert any(name in named(verb) and name not in TABLE[verb] for verb in VERBS)


def test_a_parameter_without_a_description() -> None:
    """It is an error when the command is made, and not an option without a help."""
    options = import_module("manyheads.cli.options")

    def run(quiet: bool = False) -> None: ...

    with pytest.raises(KeyError, match="quiet"):
        options.command("models", run)
    made = options.command("models", import_module("manyheads.cli.models").run)
    assert [*inspect.signature(made).parameters] == ["json", "plugin"]
