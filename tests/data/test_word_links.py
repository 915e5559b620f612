"""Words of known origin: what both sides of a pair have, once each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.text.word_links import exact_matches


def said(source: str, target: str) -> list[tuple[str, str]]:
    """The characters that each link joins."""
    return [
        (target[slice(*link.target)], source[slice(*span)])
        for link in exact_matches(source, target)
        for span in link.sources
    ]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Friday, 20 November 2026", "2026년 11월 20일 금요일", ["2026", "20"]),
        ("11/20/26", "2026년 11월 20일", ["11", "20"]),
        ("11/11/2026", "2026년 11월 11일", ["2026"]),  # which 11 is which, nobody knows
        ("Call len(x) or repr(y).", "len(x) oder repr(y) aufrufen.", ["repr"]),  # len is short
        ("my TOEFL score", "내 TOEFL에서", ["TOEFL"]),  # a particle belongs to the next word
        ("Der Mann hat", "The man has a hat", []),
        ("Mike mike", "Mike", ["Mike"]),  # case counts
        ("1,000", "1.000", ["1", "000"]),
        ("x_1", "x_1", ["1"]),
        ("", "7", []),
    ],
)
def test_what_is_carried_over(source: str, target: str, expected: list[str]) -> None:
    assert said(source, target) == [(word, word) for word in expected]


texts = st.text("ab1 2가나-, ", max_size=30)


@given(texts, texts)
def test_both_ends_say_the_same_once(source: str, target: str) -> None:
    for word, origin in said(source, target):
        assert word == origin
        assert word.isdigit() or len(word) >= 4
    ends = [link.target for link in exact_matches(source, target)]
    assert ends == sorted(ends)


@given(texts, texts)
def test_it_is_the_same_from_the_other_side(source: str, target: str) -> None:
    there = {(link.target, *link.sources) for link in exact_matches(source, target)}
    back = {(span, link.target) for link in exact_matches(target, source) for span in link.sources}
    assert there == back
