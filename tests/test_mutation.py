"""The script that measures the tests: what it changes, and what it leaves alone."""

from pathlib import Path
from typing import Any

import pytest

from scripts import mutation
from scripts.mutation import Mutator

CODE = '''\
"""What a docstring says."""

def larger(a: "int", b: int = 1) -> bool:
    """Say it."""
    assert a
    if not a:
        raise ValueError(f"{a} is nothing, b is {b + 1}")
    total = sum([a, b], start=0)
    return total > 2 and b >= 0
'''


WAITING = """\
class Queue:
    async def next(self) -> "int":
        return 1
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(mutation, "PACKAGE", tmp_path)
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    return tmp_path


def test_mutants_of_a_function(package: Path) -> None:
    """Every operator once; no word of docstrings, types, assertions and messages."""
    found = [(each.line, each.was, each.now) for each in Mutator("code.py").found]
    assert found == [
        (3, "1", "2"),
        (3, "1", "0"),
        (6, "if not a:", "if not not a:"),
        (6, "not a", "a"),
        (7, "raise ValueError(f'{a} is nothing, b is {b + 1}')", "pass"),
        (8, "sum([a, b], start=0)", "sum([a, b])"),
        (8, "0", "1"),
        (8, "0", "-1"),
        (9, "return total > 2 and b >= 0", "return None"),
        (9, "total > 2 and b >= 0", "total > 2 or b >= 0"),
        (9, "total > 2", "total >= 2"),
        (9, "2", "3"),
        (9, "2", "1"),
        (9, "b >= 0", "b > 0"),
        (9, "0", "1"),
        (9, "0", "-1"),
    ]


def answer(number: int | None) -> object:
    """What the function makes of 2 and its default 1: their sum, 3, is larger than 2."""
    names: dict[str, Any] = {}
    exec(compile(Mutator("code.py", number).tree, "code.py", "exec"), names)
    try:
        return names["larger"](2)
    except ValueError:
        return "error"


def test_one_mutant_is_made(package: Path) -> None:
    """The others stay away; a default value belongs to the module, not to the function."""
    mutants = Mutator("code.py").found
    assert [each.function for each in mutants] == [None] * 2 + ["larger"] * 14
    assert answer(None) is True
    assert [answer(each.number) for each in mutants] == [
        *(True, False, "error", "error", True, True, True, False),
        *(None, True, True, False, True, True, True, True),
    ]


def test_asynchronous_functions_are_functions(package: Path) -> None:
    """Servers are made of them; their code can be exchanged like any other."""
    (package / "queue.py").write_text(WAITING, encoding="utf-8")
    found = [(each.line, each.function, each.now) for each in Mutator("queue.py").found]
    assert found == [
        (3, "Queue.next", "return None"),
        (3, "Queue.next", "2"),
        (3, "Queue.next", "0"),
    ]
