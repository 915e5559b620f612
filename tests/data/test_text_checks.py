"""Every kind of damage in a corpus that has only this: found, named, on the right line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manyheads.data.checks.issue_detectors import fix_mojibake, numbers
from manyheads.data.checks.issue_types import ISSUE_TYPES, SEVERITIES
from manyheads.data.checks.sentence_alignment import Shift, find_shifts, unlike_lengths
from manyheads.data.checks.text_checks import Checker, HeldOut
from manyheads.data.text.formats import Pair, read_pairs
from tests.data.damaged import Texts, jsonl, number, packed, pairs, raw, tmx, tsv, two_files

GOOD = pairs()
LINE = 23  # where the damage is


def checked(path: Path) -> Checker:
    checker = Checker("en", "de")
    for pair in read_pairs(path, "en", "de", report=checker.report):
        checker.add(pair)
    return checker


def named(checker: Checker) -> list[tuple[str, tuple[int, ...], str]]:
    return [(found.kind, found.lines, found.sides) for found in checker.findings()]


def with_pair(source: str, target: str, line: int = LINE) -> Texts:
    texts = list(GOOD)
    texts[line - 1] = (source, target)
    return texts


def with_source(change: Callable[[str], str]) -> Texts:
    return with_pair(change(GOOD[LINE - 1][0]), GOOD[LINE - 1][1])


def with_target(change: Callable[[str], str]) -> Texts:
    return with_pair(GOOD[LINE - 1][0], change(GOOD[LINE - 1][1]))


def test_a_corpus_without_fault() -> None:
    """Nothing is found where nothing is wrong: the cases below each have one fault."""
    checker = Checker("en", "de")
    for pair in number(GOOD):
        checker.add(pair)
    assert checker.findings() == []
    assert len(checker) == len(GOOD) == 60


# --- One text, one pair -------------------------------------------------------------------------

LONG = " and ".join(source for source, _ in GOOD), " und ".join(target for _, target in GOOD)
RUSSIAN = "никто не знает ответа на этот вопрос"
ENGLISH = "we do not have a translation of this, and it is not the only one"

IN_A_PAIR: dict[str, list[tuple[Texts, str]]] = {
    "copied": [(with_pair(GOOD[LINE - 1][0], GOOD[LINE - 1][0].capitalize()), "both")],
    "unexpected-script": [
        (with_target(lambda text: RUSSIAN), "target"),
        (with_source(lambda text: (RUSSIAN * 5)[: len(text)]), "source"),
    ],
    "unexpected-language": [
        (with_target(lambda text: ENGLISH), "target"),
        (with_target(lambda text: "Le bureau est recouvert de poussière."), "target"),  # neither
    ],
    "swapped-sides": [(with_pair(*GOOD[LINE - 1][::-1]), "both")],
    "different-numbers": [(with_pair("it rained in 1984", "es hat 1894 geregnet"), "both")],
    "too-long": [(with_pair(*LONG), "both")],
    "length-ratio": [(with_pair("it is raining", GOOD[0][1] * 3), "both")],
    "replacement-character": [(with_target(lambda text: f"{text} f\ufffdr"), "target")],
    "mojibake": [
        (with_target(lambda text: f"{text} für Bücher".encode().decode("latin-1")), "target"),
        (with_target(lambda text: f"{text} – grün".encode().decode("cp1252")), "target"),
        (with_target(lambda text: f"{text} “für” dich".replace("“für", "“fÃ¼r")), "target"),
    ],
    "byte-order-mark": [(with_source(lambda text: f"\ufeff{text}"), "source")],
    "control-characters": [
        (with_source(lambda text: f"{text}\x07"), "source"),
        (with_target(lambda text: text.replace(" ", "\x85", 1)), "target"),
    ],
    "invisible-characters": [
        (with_target(lambda text: text.replace("e", "e\u200b", 1)), "target"),
        (with_target(lambda text: text.replace("e", "e\u00ad", 1)), "target"),
    ],
    "line-break": [(with_target(lambda text: text.replace(" ", "\n", 1)), "target")],
    "html-entities": [
        (with_source(lambda text: f"{text} &amp; more"), "source"),
        (with_source(lambda text: f"{text} &#8211; more"), "source"),
    ],
    "markup": [(with_source(lambda text: f"<b>{text}</b>"), "source")],
    "no-words": [(with_pair("12 34 56 – 78 % (9)", "12 34 56 – 78 % (9)"), "both")],
    "only-url": [(with_pair("https://example.org/a/b/c/d", "https://example.org/a/b/c/d"), "both")],
    "repeated-characters": [
        (with_source(lambda text: f"{text} nooooooo"), "source"),
        (with_target(lambda text: f"{text} ............"), "target"),
    ],
    "long-word": [(with_pair("the name is " + "abcdefg" * 9, "er heißt " + "gfedcba" * 9), "both")],
    "unusual-spaces": [
        (with_source(lambda text: text.replace(" ", "\u00a0", 1)), "source"),
        (with_source(lambda text: text.replace(" ", "\u2028", 1)), "source"),
        (with_source(lambda text: text.replace(" ", "\t", 1)), "source"),
    ],
    "spacing": [
        (with_source(lambda text: text.replace(" ", "  ", 1)), "source"),
        (with_target(lambda text: f" {text}"), "target"),
        (with_target(lambda text: f"{text} "), "target"),
    ],
    "not-nfc": [(with_target(lambda text: f"{text} fu\u0308r dich"), "target")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "texts", "side"),
    [(kind, *case) for kind, cases in IN_A_PAIR.items() for case in cases],
    ids=[f"{kind}-{n}" for kind, cases in IN_A_PAIR.items() for n in range(len(cases))],
)
def test_damage_in_a_pair(tmp_path: Path, kind: str, texts: Texts, side: str) -> None:
    """This kind, on line 23, on this side, and no other finding anywhere."""
    assert named(checked(jsonl(tmp_path, texts))) == [(kind, (LINE,), side)]


# --- The file -----------------------------------------------------------------------------------

IN_A_FILE: dict[str, list[tuple[Callable[[Path], Path], int]]] = {
    "empty-file": [(lambda folder: raw(folder, "a.tsv", b""), 1)],
    "damaged-gzip": [(lambda folder: packed(folder, tsv(GOOD), cut=8), 61)],
    "unequal-counts": [
        (lambda folder: _lose_a_line(two_files(folder, GOOD), ".de", 60), 60),
        (lambda folder: _lose_a_line(two_files(folder, GOOD), ".en", 60), 60),
    ],
    "invalid-utf8": [
        (lambda folder: raw(folder, "a.tsv", _with_line(b"one\tf\xfcr\n")), LINE),
        (lambda folder: raw(folder, "a.tsv", _with_line("안\t하\n".encode()[:-2] + b"\n")), LINE),
    ],
    "invalid-record": [
        (lambda folder: raw(folder, "a.jsonl", b'{"en": "a", "de": "b"}\n{"en": "c"\n'), 2),
        (lambda folder: raw(folder, "a.csv", b'en,de\na,b\n"c" c,d\n'), 3),
        (lambda folder: raw(folder, "a.tmx", tmx(GOOD).replace(b"</tu>\n</body>", b"</body>")), 62),
    ],
    "missing-column": [(lambda folder: raw(folder, "a.tsv", _with_line(b"one two\n")), LINE)],
    "extra-column": [(lambda folder: raw(folder, "a.tsv", _with_line(b"a, b\tor c\td\n")), LINE)],
    "no-pairs": [
        (lambda folder: raw(folder, "a.csv", b"en,de\n"), 1),
        (lambda folder: raw(folder, "a.jsonl", b"\n\n"), 1),
    ],
    "wide-encoding": [
        (lambda folder: raw(folder, "a.tsv", tsv(GOOD).decode().encode("utf-16")), 1),
        (lambda folder: two_files(folder, GOOD, start="\ufeff", encoding="utf-32-le"), 1),
    ],
    "endless-line": [(lambda folder: raw(folder, "a.tsv", _with_line(b"x" * 2**21 + b"\n")), LINE)],
    "data-as-header": [
        (lambda folder: raw(folder, "a.csv", tsv(GOOD).replace(b"\t", b",")), 1),
    ],
    "empty-side": [
        (lambda folder: two_files(folder, with_source(lambda text: "")), LINE),
        (lambda folder: two_files(folder, with_target(lambda text: " ")), LINE),
    ],
    "incomplete-unit": [
        (lambda folder: raw(folder, "a.tmx", tmx(GOOD).replace(b'"en"', b'"fr"', 1)), 3),
    ],
    "windows-line-ends": [
        (lambda folder: raw(folder, "a.tsv", tsv(GOOD).replace(b"\n", b"\r\n")), 1),
        (lambda folder: two_files(folder, GOOD, end="\r\n"), 1),
    ],
    "leading-byte-order-mark": [
        (lambda folder: raw(folder, "a.tsv", b"\xef\xbb\xbf" + tsv(GOOD)), 1),
    ],
    "header-as-data": [(lambda folder: raw(folder, "a.tsv", b"Source\tTarget\n" + tsv(GOOD)), 1)],
}  # fmt: skip


def _with_line(line: bytes) -> bytes:
    texts = tsv(GOOD).splitlines(keepends=True)
    texts[LINE - 1] = line
    return b"".join(texts)


def _lose_a_line(stem: Path, ending: str, line: int) -> Path:
    path = Path(f"{stem}{ending}")
    texts = path.read_bytes().splitlines(keepends=True)
    del texts[line - 1]
    path.write_bytes(b"".join(texts))
    return stem


@pytest.mark.parametrize(
    ("kind", "write", "line"),
    [(kind, *case) for kind, cases in IN_A_FILE.items() for case in cases],
    ids=[f"{kind}-{n}" for kind, cases in IN_A_FILE.items() for n in range(len(cases))],
)
def test_damage_of_a_file(
    tmp_path: Path, kind: str, write: Callable[[Path], Path], line: int
) -> None:
    """This kind, with its line, and no other finding."""
    findings = checked(write(tmp_path)).findings()
    assert [(found.kind, found.lines) for found in findings] == [(kind, (line,))]


# --- The corpus as a whole -----------------------------------------------------------------------


def test_a_pair_that_occurs_again(tmp_path: Path) -> None:
    """The first stays, the others are named; equal sources alone are no duplicates."""
    texts = [*GOOD, GOOD[0], (GOOD[1][0], f"{GOOD[1][1]} nie"), GOOD[0]]
    checker = checked(two_files(tmp_path, texts))
    (found,) = checker.findings()
    assert (found.kind, found.lines, found.count) == ("duplicate-pair", (61, 63), 2)


def test_a_source_with_many_targets(tmp_path: Path) -> None:
    """Four different ones, where the source first occurs; the same target twice counts once."""
    texts = [*GOOD, *((GOOD[6][0], f"{GOOD[6][1]} {word}") for word in ("oft", "nie", "hier"))]
    assert named(checked(two_files(tmp_path, texts))) == [("many-targets", (7,), "source")]
    assert checked(two_files(tmp_path, texts[:-1])).findings() == []


@pytest.mark.parametrize("split", ["test", "valid"])
@pytest.mark.parametrize(
    ("part", "held_out"),
    [
        ("pair", GOOD[LINE - 1]),
        ("source", (GOOD[LINE - 1][0], "etwas anderes")),
        ("target", ("something else", GOOD[LINE - 1][1])),
    ],
)
def test_overlap(split: str, part: str, held_out: tuple[str, str]) -> None:
    """Pair, source or target of a training pair that is also held out."""
    checker = Checker(
        "en", "de", {split: HeldOut([Pair(9, "other", "andere"), Pair(5, *held_out)])}
    )
    for pair in number(GOOD):
        checker.add(pair)
    (found,) = checker.findings()
    assert (found.kind, found.lines) == (f"{split}-overlap-{part}", (LINE,))


@pytest.mark.parametrize("lag", [-2, -1, 1, 3])
def test_a_shift(tmp_path: Path, lag: int) -> None:
    """Lines lost on one side, and the counts made equal at the end: where it begins is named."""
    source, target = (list(side) for side in zip(*pairs(120), strict=True))
    del (target if lag < 0 else source)[LINE - 1 : LINE - 1 + abs(lag)]
    del (source if lag < 0 else target)[-abs(lag) :]
    texts = list(zip(source, target, strict=True))
    (found,) = checked(two_files(tmp_path, texts)).findings()
    assert found.kind == "shifted-lines"
    assert found.severity == "error"
    assert abs(found.lines[0] - LINE) <= 1  # a lost line fits neither way
    assert abs(found.count - (len(texts) - LINE)) <= 3


def test_unequal_counts_say_where_they_part(tmp_path: Path) -> None:
    """A line lost on line 23: the counts and the place."""
    path = _lose_a_line(two_files(tmp_path, pairs(120)), ".de", LINE)
    found = {found.kind: found.lines[0] for found in checked(path).findings()}
    assert found.keys() == {"unequal-counts", "shifted-lines"}
    assert abs(found["shifted-lines"] - LINE) <= 1


def test_a_stretch_in_the_middle_is_shifted() -> None:
    """Lost on one side, and later lost on the other."""
    random = np.random.default_rng(0)
    source = random.integers(10, 200, 1000)
    target = np.round(source * random.normal(1.1, 0.1, 1000)).astype(int)
    target[300:400] = target[301:401]
    nothing = np.zeros(1000, dtype=int)
    (shift,) = find_shifts((source, target), (nothing, nothing))
    assert shift.lag == -1
    assert (shift.start, shift.end) == pytest.approx((300, 400), abs=2)


def test_numbers_show_a_shift_that_lengths_do_not() -> None:
    """All lines equally long: only the numbers in them tell."""
    same = np.full(100, 50)
    numbers = np.arange(1, 101)
    assert find_shifts((same, same), (numbers, numbers)) == []
    assert find_shifts((same, same), (numbers, np.roll(numbers, 1))) == [Shift(0, 99, 1)]


def test_sorted_lines_are_not_shifted() -> None:
    """Neighbours in a corpus sorted by length fit as well: that is no evidence."""
    lengths = np.sort(np.random.default_rng(0).integers(10, 300, 5000))
    noise = np.random.default_rng(1).normal(1, 0.1, 5000)
    nothing = np.zeros(5000, dtype=int)
    assert find_shifts((lengths, (lengths * noise).astype(int)), (nothing, nothing)) == []


def test_lengths_are_compared_with_those_of_the_corpus() -> None:
    """Targets of half the length are usual in one corpus and unlike the others in another."""
    source = np.full(50, 80)
    target = np.full(50, 40)
    assert unlike_lengths(source, target).tolist() == []
    target[7] = 300
    assert unlike_lengths(source, target).tolist() == [7]
    assert unlike_lengths(np.full(50, 2), np.arange(50) % 10).tolist() == []  # short texts vary


@pytest.mark.parametrize("end", ["", "만"])
@pytest.mark.parametrize("text", ["1" * 50_000, "1," * 50_000, "1.000 " * 50_000])
def test_numbers_of_any_length(text: str, end: str) -> None:
    """In time that grows with the text, and without Python's limit of digits."""
    assert (numbers(text + end) == []) == (end != "" and " " not in text)


# --- What is not damage --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("The C API", "C API", ("en", "ko")),  # terms stay in Latin letters
        ("See HTML 5.", "HTML 5를 보십시오.", ("en", "ko")),
        ("He said “yes”.", "Er sagte „ja“.", ("en", "de")),
        ("The hero says hello.", "Der Held sagt „Gruß“.", ("en", "de")),  # ß“ could be mojibake
        ("Really?", "Vraiment\u00a0?", ("en", "fr")),  # typography, not an unusual space
        ("“That”", "«\u202fCela\u202f»", ("en", "fr")),
        ("AT&T & Co; R&D", "AT&T & Co; F&E", ("en", "de")),
        ("The entity &#0; or &foo;", "Die Entität &#0; oder &foo;", ("en", "de")),  # no characters
        ("if a < b and b > c", "wenn a < b und b > c", ("en", "de")),
        ("It was 3 pm.", "Es war 15 Uhr.", ("en", "de")),
        ("It costs 1,234.56 dollars.", "Es kostet 1.234,56 Dollar.", ("en", "de")),
        ("It has 380,000 inhabitants.", "주민이 38만 명이다.", ("en", "ko")),
        ("New York", "New York", ("en", "de")),
        ("👩\u200d👩\u200d👧 family", "👩\u200d👩\u200d👧 Familie", ("en", "de")),
        ("I like reading.", "本を読むのが好きです。", ("en", "ja")),
        ("Hmm... no.", "Hmm... nein.", ("en", "de")),
        ("one", "eins", ("xx", "yy")),  # languages that are not known
    ],
)
def test_no_false_alarm(source: str, target: str, languages: tuple[str, str]) -> None:
    """Good pairs that look odd."""
    checker = Checker(*languages)
    checker.add(Pair(1, source, target))
    assert checker.findings() == []


def test_most_pairs_exchanged_is_an_error(tmp_path: Path) -> None:
    """A few are a warning; if it is most of them, the languages were named the wrong way round."""
    checker = checked(two_files(tmp_path, [(target, source) for source, target in GOOD]))
    (found,) = checker.findings()
    assert (found.kind, found.severity) == ("swapped-sides", "error")
    assert found.count > 50


def test_exchanged_sides_in_different_scripts() -> None:
    """Letters suffice."""
    checker = Checker("en", "ko")
    checker.add(Pair(1, "나는 차를 사고 싶다.", "I want to buy a car."))
    assert named(checker) == [("swapped-sides", (1,), "both")]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
@pytest.mark.parametrize(
    "text", ["für Bücher", "« à l’été »", "naïve Größe – „so“", "привет", "안녕"]
)
def test_mojibake_is_reversed(text: str, encoding: str) -> None:
    """What was read with the wrong encoding comes back exactly."""
    try:
        broken = text.encode().decode(encoding)
    except UnicodeDecodeError:  # five bytes mean nothing in Windows-1252
        broken = text.encode().decode("latin-1")
    assert fix_mojibake(broken) == text
    assert fix_mojibake(text) is None


# --- All of them --------------------------------------------------------------------------------


def test_every_kind_is_tested() -> None:
    """A kind without a case here would be a promise only."""
    elsewhere = {"duplicate-pair", "many-targets", "shifted-lines"}
    elsewhere |= {
        f"{s}-overlap-{p}" for s in ("test", "valid") for p in ("pair", "source", "target")
    }
    assert IN_A_PAIR.keys() | IN_A_FILE.keys() | elsewhere == ISSUE_TYPES.keys()
    assert len(ISSUE_TYPES) >= 20


def test_every_kind_has_one_plain_line() -> None:
    """What it is and what to do, short enough for a terminal."""
    for kind in ISSUE_TYPES.values():
        assert len(kind.what) < 75
        assert len(kind.remedy) < 90
        assert kind.remedy.endswith(".")
        assert kind.severity in SEVERITIES
        assert kind.fix in ("drop", "change", "")


def test_findings_are_sorted_and_few_lines_are_listed() -> None:
    """The worst first, then the most frequent; five lines and a count."""
    checker = Checker("en", "de")
    for line in range(1, 9):
        checker.add(Pair(line, f"line {'x' * line} ", f"{'y' * line} Zeile\x07"))
    first, second = checker.findings()[:2]
    assert (first.kind, first.count, first.lines) == ("control-characters", 8, (1, 2, 3, 4, 5))
    assert first.example == "y Zeile\x07"
    assert second.kind == "repeated-characters" or second.severity == "note"
