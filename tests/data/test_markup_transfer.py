"""What was left out of a sentence goes back where an alignment says, with its spaces."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.documents.markup_transfer import Link, extract_markup, reinsert
from manyheads.data.documents.placeholders import find

WORD = re.compile(r"\w+|[^\w\s]")


def reinserted(source: str, translation: str, read: list[int]) -> str:
    """Reinsert, given for each word of the translation which word of the rest it comes from."""
    rest, spans = extract_markup(source, find(source))
    words = [match.start() for match in WORD.finditer(rest)]
    outputs = [match.span() for match in WORD.finditer(translation)]
    links = [Link(*span, words[n]) for span, n in zip(outputs, read, strict=True)]
    return reinsert(rest, translation, spans, links)


@pytest.mark.parametrize(
    ("source", "rest", "left_out"),
    [
        ("Two <b>dogs</b> run.", "Two dogs run.", ["<b>", "</b>"]),
        ("Visit https://x.example/y.", "Visit.", ["https://x.example/y"]),
        ("A man 🎉 dances.", "A man dances.", ["🎉"]),
        ("foo (`x`), bar", "foo, bar", ["(`x`)"]),  # with its brackets
        ("{user}'s dog", " dog", ["{user}'s"]),  # with the rest of its word
        ("Go {a}/{b} <i>{c}</i> now", "Go now", ["{a}/{b} <i>{c}</i>"]),  # no word between
        ("{name}: a dog", " a dog", ["{name}:"]),
        ("no items", "no items", []),
    ],
)
def test_take_out(source: str, rest: str, left_out: list[str]) -> None:
    """Single spaces are left."""
    found, spans = extract_markup(source, find(source))
    assert (found, [span.text for span in spans]) == (rest, left_out)


@pytest.mark.parametrize(
    ("source", "translation", "read", "expected"),
    [
        # In the same order; tags touch their words, and not the others.
        (
            "Two <b>dogs</b> run in the <i>snow</i>.",
            "Zwei Hunde rennen im Schnee.",
            [0, 1, 2, 3, 5, 6],
            "Zwei <b>Hunde</b> rennen im <i>Schnee</i>.",
        ),
        # "er" belongs into the tags, "lief" does not.
        ("Yesterday <b>he</b> ran.", "Gestern lief er.", [0, 2, 1, 3], "Gestern lief <b>er</b>."),
        # Words that went over both tags cost less than empty tags.
        (
            "Click <b>here</b> or <i>there</i> now",
            "Jetzt hier oder da klicken",
            [4, 1, 2, 3, 0],
            "Jetzt <b>hier</b> oder <i>da</i> klicken",
        ),
        ("See https://x.example.", "Siehe.", [0, 1], "Siehe https://x.example."),
        ("{name} and a girl", "und ein Kind", [0, 1, 2], "{name} und ein Kind"),
        ("A (`x`), b", "Ein, be", [0, 1, 2], "Ein (`x`), be"),
        ("I read {a} today", "오늘 읽었다", [2, 1], "오늘 읽었다 {a}"),
        # Tags inside words keep the space between the words of the translation.
        ("The <b>dog</b>s run", "Die Hunde rennen", [0, 1, 2], "Die <b>Hunde</b> rennen"),
        (
            "I like t<b>he red</b> house",
            "Ich mag das rote Haus",
            [0, 1, 2, 3, 4],
            "Ich mag das <b>rote</b> Haus",
        ),
    ],
)
def test_reinsert(source: str, translation: str, read: list[int], expected: str) -> None:
    """By hand: the place that contradicts the fewest words."""
    assert reinserted(source, translation, read) == expected


def test_without_any_alignment() -> None:
    """Nothing is lost."""
    rest, spans = extract_markup("a {x} b", find("a {x} b"))
    assert "{x}" in reinsert(rest, "c d", spans, [])
    assert reinsert(rest, "", spans, []) == "{x}"


@given(st.data())
def test_nothing_is_lost(data: st.DataObject) -> None:
    """Whatever the alignment, the words stay in order, and so do the spans."""
    parts = ["one", "two", "<b>", "</b>", "{x}", "`c`", "🎉", "three", "four"]
    source = " ".join(data.draw(st.lists(st.sampled_from(parts), min_size=1)))
    rest, spans = extract_markup(source, find(source))
    translation = " ".join(data.draw(st.lists(st.sampled_from(["eins", "zwei", "drei."]))))
    words = [match.span() for match in WORD.finditer(translation)]
    places = st.integers(0, max(len(rest) - 1, 0))
    found = reinsert(rest, translation, spans, [Link(*word, data.draw(places)) for word in words])
    assert re.findall("eins|zwei|drei", found) == re.findall("eins|zwei|drei", translation)
    assert [item.text for item in find(found)] == [item.text for item in find(source)]
