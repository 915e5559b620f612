"""Every regular expression of the package takes time in proportion to the length of the text.

An expression is found where it stands in the source: as an argument of a function of `re`, or as a
pattern that is compiled for a module. It is applied as the package does, to texts that are made of
the expression itself: each of its parts, repeated behind each of its beginnings.
"""

import ast
import importlib
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import manyheads
from manyheads.data.checks.issue_detectors import unusual_spaces
from manyheads.data.documents.office import DOCX, XLSX
from manyheads.data.documents.placeholders import as_word
from manyheads.data.text.languages import letters, script
from manyheads.models.convert.families import TIMM, TORCHVISION

SOURCE = Path(manyheads.__file__).parent
# Texts of the package's own, such as the layouts of dates: nobody else writes them.
OWN_TEXTS = ("data/synthetic/dates.py", "lens/view/report.py")
METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
SIZES = (500, 2000, 8000, 32_000)  # characters
MEASURABLE = 0.02  # seconds
SLOW = 0.05  # seconds for the shortest text: none that is linear takes so long


class Expression(NamedTuple):
    """A pattern, and where it is applied by one method."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    def apply(self, text: str) -> None:
        """Apply it to a whole text."""
        given: Any = text
        if isinstance(self.pattern.pattern, bytes):
            given = text.encode("latin-1", "replace")
        if self.method in ("match", "fullmatch", "search"):
            getattr(self.pattern, self.method)(given)
        else:
            for _ in self.pattern.finditer(given):
                pass


def expressions() -> Iterator[Expression]:
    """Find all that are written out, or compiled for a module."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(SOURCE).as_posix()
        if "import re\n" not in text or place.startswith(OWN_TEXTS):
            continue
        name = f"manyheads/{place}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        compiled = dict(_compiled_in(vars(importlib.import_module(name))))
        used = set()
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(
                    ast.Attribute(ast.Name("re"), method),
                    [ast.Constant(str() | bytes() as own), *_],
                ) if method in METHODS:
                    pattern: Any = re.compile(own, _flags(node))
                    yield Expression(f"{place}:{node.lineno}", pattern, method)
                case ast.Attribute(ast.Name(key), method) if method in METHODS and key in compiled:
                    used.add(key)
                    yield Expression(f"{place}:{node.lineno}", compiled[key], method)
        for key in compiled.keys() - used:
            yield Expression(f"{place}, {key}", compiled[key], "finditer")


def _compiled_in(names: dict[str, Any]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Find patterns among the names of a module, and in its lists and tables."""
    for name, value in names.items():
        parts = [value]
        if isinstance(value, list | tuple | dict) and name.strip("_").isupper():
            parts = list(value.values() if isinstance(value, dict) else value)
        for number, part in enumerate(parts):
            if isinstance(part, re.Pattern):
                yield name if part is value else f"{name}[{number}]", part


def _flags(node: ast.AST) -> int:
    names = [each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    return sum({int(getattr(re, name)) for name in names if name.isupper()})


def made() -> Iterator[Expression]:
    """Make those that are put together when they are needed."""
    for family in (*TIMM, *TORCHVISION):
        yield Expression(f"{family.name}", re.compile(family.head), "match")
        for word in family.words:
            yield Expression(f"words of {family.name}", re.compile(word), "fullmatch")
    for term in ("one", "a b", "\uac00", "(", "a" * 40):
        yield Expression(f"the term {term}", as_word(term), "findall")
    for language in ("en", "fr", "ko"):
        yield Expression(f"spaces of {language}", unusual_spaces(language), "sub")
        yield Expression(f"letters of {language}", letters(str(script(language))), "findall")
    for package in (DOCX, XLSX):
        yield Expression("parts of an archive", re.compile(package.parts), "fullmatch")


# --- Texts --------------------------------------------------------------------------------------

LETTERS = "a1 \n\t<>&;:=\"'/\\-_.,!?()[]{}#*|+~`@$%^0Z\u00e9\uac00\u3042\u4e00\u2013\u3002\0\x85"


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """Yield beginnings, and what to repeat behind them."""
    written: dict[str, None] = {}
    _write(parser.parse(pattern.pattern, pattern.flags), written)
    parts = sorted(filter(None, written), key=len)
    yield from product(("", *parts[-8:]), dict.fromkeys((*parts[:24], *parts[-8:])))


def _write(tree: Any, written: dict[str, None]) -> str:
    """Write a text that a part of a pattern matches; note it, its beginnings and its parts."""
    text = ""
    for operation, value in tree:
        text += _write_one(operation, value, written)
        written[text] = None
    return text


def _write_one(operation: Any, value: Any, written: dict[str, None]) -> str:
    match operation:
        case sre.LITERAL:
            return chr(value)
        case sre.ANY:
            return "a"
        case sre.NOT_LITERAL:
            return next(each for each in LETTERS if ord(each) != value)
        case sre.IN:
            known = [each for each in LETTERS if _matches(value, each)]
            begin = [
                v if o is sre.LITERAL else v[0] for o, v in value if o in (sre.LITERAL, sre.RANGE)
            ]
            return next(iter((*known, *map(chr, begin))))
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            least, _, body = value
            return _write(body, written) * max(least, 1)
        case sre.SUBPATTERN:
            return _write(value[-1], written)
        case sre.ATOMIC_GROUP:
            return _write(value, written)
        case sre.BRANCH:
            return max((_write(each, written) for each in value[1]), key=len)
        case sre.ASSERT | sre.ASSERT_NOT:
            _write(value[1], written)
    return ""


def _matches(items: Any, character: str) -> bool:
    """Tell whether a set of characters, alone, has this one."""
    tree = parser.SubPattern(parser.State(), [(sre.IN, list(items))])
    tree.state.str = ""
    return compiler.compile(tree).match(character) is not None


def seconds(
    expression: Expression, begin: str, again: str, size: int, enough: float = 0.0
) -> float:
    """Measure the processor's time for a text of about this size: the least of three.

    One that takes no longer than `enough` is measured once.
    """
    text = begin + again * (size // len(again)) + "\x01"
    times: list[float] = []
    while len(times) < 3 and (not times or times[-1] > enough):
        start = time.process_time()
        expression.apply(text)
        times.append(time.process_time() - start)
    return min(times)


def is_linear(expression: Expression, begin: str, again: str) -> bool:
    """Compare the times at sizes that are four times the one before.

    Four times the text takes four times the time, or sixteen where it grows with the square.
    """
    if seconds(expression, begin, again, SIZES[0], SLOW) > SLOW:
        return False
    for shorter, size in pairwise(SIZES):
        now = seconds(expression, begin, again, size, MEASURABLE)
        if now > MEASURABLE:
            return now < 9 * seconds(expression, begin, again, shorter)
    return True


@pytest.mark.timeout(900)
def test_every_expression_is_linear() -> None:
    """One that is not stops a server that reads a text of a megabyte."""
    found = [*expressions(), *made()]
    assert len(found) > 150
    slow = [
        (each.place, each.pattern.pattern, begin, again)
        for each in found
        for begin, again in attacks(each.pattern)
        if not is_linear(each, begin, again)
    ]
    assert slow == []


@pytest.mark.parametrize(
    ("pattern", "method", "linear"),
    [
        (r"<\w+\s[^>]*?name=", "findall", False),
        (r" *\n", "sub", False),
        (r"=\s*\"?\s*u", "search", False),
        (r"</?\w+[^/]*>", "match", False),
        (r"=\s*+\"?\s*+u", "search", True),
        (r"[^ \n]*\n|[^\n]+", "findall", True),
    ],
)
def test_what_is_not_linear_is_found(pattern: str, method: str, *, linear: bool) -> None:
    """By the texts that are made of the pattern."""
    expression = Expression("here", re.compile(pattern), method)
    found = [is_linear(expression, *each) for each in attacks(expression.pattern)]
    assert all(found) == linear
