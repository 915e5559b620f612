"""Every call of the command on every page is understood by its parser; its recipes are, too."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from manyheads.cli.main import whole
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import shipped

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/decisions/*.md",
        "docs/lab/*.md",
        "docs/results/*.md",
    )
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"  # names what is gone, too
)
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
PLACES = {"N": "1"}  # numbers that a page leaves open


class Call(NamedTuple):
    """A call of manyheads, and its line."""

    page: str
    line: str
    words: tuple[str, ...]


def calls(page: str, text: str) -> list[Call]:
    """Find what a page calls, in blocks and in sentences, also behind pipes and other commands."""
    text = text.replace("\\\n", " ")
    blocks = [code for language, code in FENCE.findall(text) if language in ("", "bash")]
    inline = re.findall(r"`([^`]*)`", FENCE.sub("", text))
    found = []
    for line in [line for block in blocks for line in block.splitlines()] + inline:
        if not re.search(r"(?:^|[ |])manyheads [a-z-]", line):
            continue
        words = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
        words.whitespace_split = True
        tokens = list(words)
        for at in [at for at, token in enumerate(tokens) if token == "manyheads"]:
            behind = tokens[at + 1 :]
            end = next((n for n, each in enumerate(behind) if re.fullmatch("[|;&<>]+", each)), None)
            found.append(Call(page, line.strip(), tuple(PLACES.get(w, w) for w in behind[:end])))
    return found


def parsed(words: Sequence[str]) -> tuple[Any, list[str]]:
    """Find the command of a call, below groups of commands, and the words behind it."""
    command, rest = whole(), list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


def is_mention(words: Sequence[str]) -> bool:
    """Tell whether a sentence names a verb, or an option of it without its value."""
    command, rest = parsed(words)
    options = {option for each in command.params for option in each.opts}
    return not rest or (len(rest) == 1 and rest[0] in {*options, "--help"})


EVERY = [each for page in PAGES for each in calls(page, (ROOT / page).read_text("utf-8"))]


def test_calls_are_found() -> None:
    """By hand: in a block with a comment, behind a pipe, over two lines, in a sentence."""
    page = """
```bash
manyheads read a.png --to en   # two words
echo "a > b" | manyheads translate --beam 4 > out.txt
manyheads train x.toml \\
    train.steps=9 --threads N
```
and `torchrun -m manyheads train`, `manyheads` or `manyheads fill "a <mask>"`.
"""
    assert [each.words for each in calls("a.md", page)] == [
        ("read", "a.png", "--to", "en"),
        ("translate", "--beam", "4"),
        ("train", "x.toml", "train.steps=9", "--threads", "1"),
        ("train",),
        ("fill", "a <mask>"),
    ]
    assert len(EVERY) > 300


@pytest.mark.parametrize("page", PAGES)
def test_the_parser_understands_every_call(page: str) -> None:
    """Verbs, options and their values."""
    wrong = []
    for call in EVERY:
        if call.page != page:
            continue
        if is_mention(call.words):
            continue
        command, words = parsed(call.words)
        try:
            command.make_context(call.words[0], words)
        except Exception as error:
            wrong.append((call.line, str(error) or type(error).__name__))
    assert wrong == []


@pytest.mark.parametrize(
    "call",
    [
        each
        for each in EVERY
        if each.words[0] == "train" and len(each.words) > 1 and each.words[1] in shipped("recipes")
    ],
    ids=lambda call: f"{call.page} {' '.join(call.words)}"[:90],
)
def test_changes_of_shipped_recipes_are_keys_of_theirs(call: Call) -> None:
    changes = [word for word in call.words[2:] if re.match(r"[a-z_.]+=", word)]
    read_recipe(shipped("recipes")[call.words[1]], changes)
