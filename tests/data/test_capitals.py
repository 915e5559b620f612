"""Texts in capitals: told, written in sentence case by what a vocabulary knows, and back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.text.capitals import in_capitals, sentence_case, to_capitals

KNOWN = {"a", "man", "rides", "his", "bike", "in", "Berlin", "A", "Two", "dogs", "TV", "watch"}


def cost(text: str) -> float:
    """One for a known word, three a letter for another."""
    return sum(1 if word in KNOWN else 3 * len(word) for word in re.findall(r"\w+", text))


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("A MAN", True),
        ("TV!", True),
        ("Ä 2 Ü", True),
        ("A", False),
        ("I 2", False),
        ("A MAn", False),
        ("12:30", False),
        ("HTTP 요청", False),
        ("", False),
    ],
)
def test_capitals(text: str, is_so: bool) -> None:
    """All letters, at least two; letters without capitals are none."""
    assert in_capitals(text) is is_so


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("A MAN RIDES HIS BIKE IN BERLIN.", "A man rides his bike in Berlin."),
        ("TWO DOGS WATCH TV. A MAN RIDES!", "Two dogs watch TV. A man rides!"),
        ("1. A MAN", "1. A man"),
        ("TV", None),  # known as it is
        ("A man RIDES", None),
    ],
)
def test_sentence_case(text: str, written: str | None) -> None:
    """The first word of a sentence, names, and words that are known in capitals."""
    assert sentence_case(text, cost) == written


@pytest.mark.parametrize(
    ("cheaper", "written"), [(1.3, "A man in berlin."), (1.5, "A man in Berlin.")]
)
def test_a_capital_must_be_four_times_as_probable(cheaper: float, written: str) -> None:
    """ln 4 is 1.39: the same for a name and for an abbreviation."""
    costs = {"A": 1.0, "man": 1.0, "in": 1.0, "berlin": 3.0, "Berlin": 3.0 - cheaper}

    def cost(text: str) -> float:
        return sum(costs.get(word, 9.0) for word in re.findall(r"\w+", text))

    assert sentence_case("A MAN IN BERLIN.", cost) == written
    costs["BERLIN"] = costs.pop("Berlin")
    written = written.replace("Berlin", "BERLIN")
    assert sentence_case("A MAN IN BERLIN.", cost) == written


def test_a_vocabulary_of_capitals_needs_no_other_case() -> None:
    """What is known as it stands stays so."""
    assert sentence_case("A MAN", lambda text: 1.0 * len(text)) is None


@given(st.text())
def test_no_character_moves(text: str) -> None:
    """Whatever the script: spans of a text hold for both of its forms."""
    assert len(to_capitals(text)) == len(text)
    changed = sentence_case(text.upper(), lambda each: sum(map(str.isupper, each)))
    assert changed is None or len(changed) == len(text.upper())


def test_sharp_s() -> None:
    """There is a capital for it, of one character."""
    assert to_capitals("Große Straße") == "GROẞE STRAẞE"
