"""Messages name parameters; only the command line writes options."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manyheads
from manyheads.cli.flags import OTHER, with_flags
from manyheads.cli.main import whole
from tests.cli.conftest import Call

PACKAGE = Path(manyheads.__file__).parent
BELOW = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in ("cli", "labs")
]
# The card of a model shows a command line.
CARDS = (
    "asks/",  # where options get their names
    "predict/task_pipeline.py",
    "tasks/",
    "convert/marian_folder.py",
    "fit/recommendation.py",
    "project/card.py",
)


def messages(path: Path) -> Iterator[str]:
    """The texts of a file that are no docstrings; f-strings whole, with {} for their values."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))  # a docstring
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            yield "".join(
                str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values
            )
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in skipped:
            yield text


def test_no_options_below_the_command_line() -> None:
    """Python and HTTP have none, and no command line that something could be given on."""
    known = set(options(whole()))  # other programs have others
    found = [
        (path.relative_to(PACKAGE).as_posix(), text)
        for path in BELOW
        for text in messages(path)
        if "command line" in text
        or (
            known & set(re.findall(r"(?<![\w-])--[a-z-]+", text))
            and not path.relative_to(PACKAGE).as_posix().startswith(CARDS)
        )
    ]
    assert found == []


def options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for each in getattr(command, "commands", {}).values():
        yield from options(each)


def test_named_parameters_are_options() -> None:
    """What a message names in backticks, the command line can be told."""
    known = set(options(whole()))
    assert set(OTHER.values()) <= known
    named = {
        with_flags(parameter).split()[0]
        for path in BELOW
        for text in messages(path)
        for parameter in re.findall(r"`[a-z_]+(?:=[^`\s{}]+)?`", text)
    }
    assert {"--final", "--resume", "--beam", "--arch", "--integrated", "--no-recase"} <= named
    assert named <= known


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("set `final=True`", "set --final"),
        ("use `split='valid'`.", "use --split valid."),
        ("leave out `recase=False`", "leave out --no-recase"),
        ("`coverage_penalty` = -1.0: no", "--coverage = -1.0: no"),
        ("see `manyheads look --json`, `data.train` and `a b`", None),
    ],
)
def test_with_flags(message: str, told: str | None) -> None:
    """Only what is a parameter and nothing else is replaced."""
    assert with_flags(message) == (told or message)


def test_errors_remarks_and_findings(call: Call, own_translator: Path) -> None:
    """Whichever way a message takes to the terminal."""
    split = call("evaluate", "--model", own_translator, "--split", "test")
    assert split.code == 2
    assert "set --final; to choose, use --split valid." in split.err
    assert "`" not in split.err
    twice = call("generate", "--model", own_translator, "--beam", "2", "--sample", "a")
    assert (twice.code, twice.out) == (2, "")
    assert "sampling has no beams: leave out --beam" in twice.err
