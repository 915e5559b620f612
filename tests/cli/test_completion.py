"""Completion with the Tab key, and recipes to start from."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from manyheads.cli.main import VERBS, whole
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe, shipped
from tests.cli.conftest import Call

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _manyheads"
    code += "; printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@bash
def test_bash_completes(call: Call) -> None:
    script = call("completion", "bash").out
    assert completed(script, "manyheads", "ev") == ["evaluate"]
    assert set(VERBS) <= set(completed(script, "manyheads", ""))
    assert completed(script, "manyheads", "look", "--unt") == ["--untrained"]
    assert completed(script, "manyheads", "evaluate", "date") == ["date-en-ko"]
    models = list(shipped("pretrained"))
    assert completed(script, "manyheads", "translate", "--model", "") == models
    assert completed(script, "manyheads", "train", "photos") == ["photos-resnet-18"]
    assert completed(script, "manyheads", "lab", "posi") == ["positions"]
    assert completed(script, "manyheads", "convert", "ti") == ["timm"]
    assert call("completion", "zsh").out.endswith(script)


@bash
@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_completed(verb: str, scripts: dict[str, str]) -> None:
    command = whole().commands[verb]
    below = getattr(command, "commands", {"": command}).values()
    flags = {flag for own in below for each in own.params for flag in each.opts if "--" in flag}
    assert flags <= set(completed(scripts["bash"], "manyheads", verb, "--"))
    begin = f"complete -c manyheads -n '__fish_seen_subcommand_from {verb}' -l "
    fish = {line.removeprefix(begin).split()[0] for line in scripts["fish"].splitlines()}
    assert {flag.removeprefix("--") for flag in flags} <= fish


@pytest.fixture
def scripts(call: Call) -> dict[str, str]:
    return {shell: call("completion", shell).out for shell in ("bash", "fish")}


def test_another_shell_is_refused(call: Call) -> None:
    found = call("completion", "tcsh")
    assert found.code == 2
    assert "'fish'" in found.err


def test_a_recipe_to_start_from(call: Call, tmp_path: Path) -> None:
    """The file as it is, with its comments: what is written is the same recipe."""
    code, out, err = call("recipe", "digits")
    assert (code, out) == (0, find_recipe("digits").read_text(encoding="utf-8"))
    assert "manyheads train mine.toml" in err
    (tmp_path / "mine.toml").write_text(out, encoding="utf-8")
    assert read_recipe(tmp_path / "mine.toml") == read_recipe(find_recipe("digits"))
    assert call("recipe", "digit").code == 2


def test_recipes_are_listed_with_what_they_are_for(call: Call) -> None:
    listed = json.loads(call("recipe", "--json").out)
    assert list(listed) == list(shipped("recipes"))
    assert listed["cifar10-resnet-20"].startswith("CIFAR-10 from scratch with a ResNet-20 (He et")
    lines = call("recipe").out.splitlines()
    assert len(lines) == len(listed)
    assert all(text in line for line, text in zip(lines, listed.values(), strict=True))
