"""Cleaning: what is mended becomes exactly this, the rest is dropped, and the log says so."""

import pytest

from manyheads.data.checks.clean import Cleaner
from manyheads.data.checks.issue_types import ISSUE_TYPES
from manyheads.data.checks.text_checks import Checker, HeldOut
from manyheads.data.text.formats import Pair
from manyheads.data.text.lines import Problem
from tests.data.damaged import Texts, number, pairs
from tests.data.test_text_checks import GOOD, IN_A_PAIR, LINE


def cleaned(texts: Texts, checker: Checker | None = None) -> tuple[Texts, Cleaner]:
    checker = Checker("en", "de") if checker is None else checker
    for pair in number(texts):
        checker.add(pair)
    cleaner = Cleaner(checker, "en", "de")
    kept = [cleaner(pair) for pair in number(texts)]
    return [(pair.source, pair.target) for pair in kept if pair is not None], cleaner


def test_nothing_is_done_without_need() -> None:
    """A corpus without fault comes back as it is, and the log is empty."""
    kept, cleaner = cleaned(GOOD)
    assert (kept, cleaner.log) == (GOOD, [])


@pytest.mark.parametrize(
    ("kind", "texts"),
    [(kind, texts) for kind, cases in IN_A_PAIR.items() for texts, _ in cases],
    ids=[f"{kind}-{n}" for kind, cases in IN_A_PAIR.items() for n in range(len(cases))],
)
def test_each_kind_is_mended_dropped_or_left(kind: str, texts: Texts) -> None:
    """As its entry says; what was mended is without fault, and all other pairs are untouched."""
    kept, cleaner = cleaned(texts)
    fix = ISSUE_TYPES[kind].fix
    logged = [(entry.line, entry.action, entry.reason) for entry in cleaner.log]
    if fix == "":
        assert (kept, logged) == (texts, [])
        return
    assert logged == [(LINE, "dropped" if fix == "drop" else "changed", kind)]
    assert cleaner.log[0].text == "\t".join(texts[LINE - 1])
    if fix == "drop":
        assert kept == texts[: LINE - 1] + texts[LINE:]
    else:
        assert kept[: LINE - 1] + kept[LINE:] == texts[: LINE - 1] + texts[LINE:]
        assert cleaned(kept)[1].log == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("fÃ¼r dich", "für dich"),
        ("“fÃ¼r” dich", "“für” dich"),  # only some of it was read wrongly
        ("Tom &amp; Anna", "Tom & Anna"),
        ("Tom &amp;amp; Anna", "Tom & Anna"),  # escaped twice
        ("Tom&nbsp;und Anna", "Tom und Anna"),  # what an entity stood for is mended as well
        ("\ufeffeins", "eins"),
        ("ei\u200bns zw\u00adei", "eins zwei"),
        ("eins \r\n zwei", "eins zwei"),
        ("eins\x85zwei\x07", "eins zwei"),
        ("eins\u2028zwei\u00a0drei\tvier", "eins zwei drei vier"),
        ("  eins   zwei ", "eins zwei"),
        ("fu\u0308r", "für"),
    ],
)
def test_what_a_text_becomes(before: str, after: str) -> None:
    """Character by character."""
    kept, cleaner = cleaned([("this is one", before)])
    assert kept == [("this is one", after)]
    assert cleaner.log[0].becomes == f"this is one\t{after}"


def test_exchanged_sides_are_exchanged_back() -> None:
    """And mended on the way."""
    source, target = GOOD[LINE - 1]
    kept, _ = cleaned([(f"{target} ", source)])
    assert kept == [(source, target)]


def test_equal_after_mending_is_equal() -> None:
    """Duplicates that only differ in what was mended."""
    kept, cleaner = cleaned([("one", "eins"), ("one ", "eins"), ("one", "eins")])
    assert kept == [("one", "eins")]
    assert [entry.reason for entry in cleaner.log] == ["duplicate-pair", "duplicate-pair"]


def test_nothing_left_is_dropped() -> None:
    """A text of control characters alone."""
    kept, cleaner = cleaned([("\x07\x08", "eins")])
    assert kept == []
    assert cleaner.log[0].reason == "empty-side"


@pytest.mark.parametrize(
    ("held_out", "dropped"),
    [(GOOD[4], True), ((GOOD[4][0], "anders"), True), (("other", GOOD[4][1]), False)],
    ids=["pair", "source", "target"],
)
def test_what_is_held_out_is_dropped(held_out: tuple[str, str], dropped: bool) -> None:
    """Pairs and sources of the test split; a target alone is only mentioned."""
    checker = Checker("en", "de", {"test": HeldOut([Pair(1, *held_out)])})
    kept, _ = cleaned(GOOD, checker)
    assert (GOOD[4] not in kept) is dropped


def test_held_out_after_mending() -> None:
    """A trailing space does not hide a test sentence."""
    checker = Checker("en", "de", {"test": HeldOut([Pair(1, *GOOD[4])])})
    texts = [*GOOD[:4], (f"{GOOD[4][0]} ", GOOD[4][1]), *GOOD[5:]]
    kept, _ = cleaned(texts, checker)
    assert kept == GOOD[:4] + GOOD[5:]


def test_shifted_lines_are_dropped() -> None:
    """Nobody knows what belongs together there; what comes before stays."""
    source, target = (list(side) for side in zip(*pairs(120), strict=True))
    del target[80]
    kept, cleaner = cleaned(list(zip(source[:-1], target, strict=True)))
    assert kept[:79] == pairs(120)[:79]
    assert len(kept) < 84
    assert {entry.reason.split(", ")[0] for entry in cleaner.log} <= {
        "shifted-lines",
        "length-ratio",
    }


def test_lines_that_cannot_be_read_are_logged_once() -> None:
    """With what stands there; two empty sides are one line."""
    cleaner = Cleaner(Checker("en", "de"), "en", "de")
    for side in ("source", "target"):
        cleaner.report(Problem("empty-side", 7, "a.tsv, line 7", "empty", " \t ", side))
    cleaner.report(Problem("invalid-utf8", 8, "a.tsv, line 8", "bad", "f\\xfcr"))
    cleaner.report(Problem("windows-line-ends", 1, "a.tsv, line 1", "harmless"))
    logged = [(entry.line, entry.reason, entry.text) for entry in cleaner.log]
    assert logged == [(7, "empty-side", " \t "), (8, "invalid-utf8", "f\\xfcr")]
