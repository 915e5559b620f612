"""Items that a translation must preserve are found, and a missing one is noticed."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.documents.placeholders import (
    KINDS,
    as_word,
    cut,
    find,
    has_words,
    preserves,
    put_together,
    same_number,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "See https://a.b/c?d=e#f. (Or http://x.org/A_(b)), www.foo.de!",
            "https://a.b/c?d=e#f http://x.org/A_(b) www.foo.de",
        ),
        (
            "https://ko.wikipedia.org/wiki/한국어 와 https://a.b를",
            "https://ko.wikipedia.org/wiki/한국어 https://a.b",
        ),
        ("Mail a.b+c@x-y.co.uk, or ask example.com/faq.", "a.b+c@x-y.co.uk example.com/faq"),
        (
            "<b>Two</b> <br/> <a href='x y'>c</a> &amp; &#38; if 3 < 4 > x",
            "<b> </b> <br/> <a href='x y'> </a> &amp; &#38; 3 4",
        ),
        (
            "Hi {name}, {0:>5} {} {{user}} ${HOME} {n, plural, one {#}}",
            "{name} {0:>5} {} {{user}} ${HOME} {n, plural, one {#}}",
        ),
        (
            "%s, %d%% of %(n)s %1$s %.2f %PATH% $x but 100% sure",
            "%s %d %% %(n)s %1$s %.2f %PATH% $x 100",
        ),
        (
            "`a b` and ``c`d`` in src/a.py, ./run.sh, C:\\a\\b, and/or km/h e.g. end.Then",
            "`a b` ``c`d`` src/a.py ./run.sh C:\\a\\b",
        ),
        ("👍🏽 👩‍👩‍👧 🇰🇷 → 1️⃣ ❤️ @you #tag", "👍🏽 👩‍👩‍👧 🇰🇷 → 1️⃣ ❤️ @you #tag"),
        (
            "3.5 1,234.50 -5 3:05 10-20 2026-11-20 1.2.3 10.0.0.1 1\xa0000",
            "3.5 1,234.50 -5 3 05 10 20 2026 11 20 1.2.3 10.0.0.1 1\xa0000",
        ),
        ("COVID-19 MP3 20th $5 5% v2.0", "19 3 20 5 5 2.0"),
        (
            "[text](http://u.v) ![alt](p.png) **bold** __init__",
            "[ ](http://u.v) ![ ](p.png) ** **",
        ),
        ('No items, no; numbers: "none" (at all) - end.', ""),
    ],
)
def test_find(text: str, expected: str) -> None:
    """Real examples of each kind, and what only looks like one."""
    assert " ".join(item.text for item in find(text)) == expected


def test_numbers_are_put_back_with_what_belongs_to_them() -> None:
    """The number must be preserved, the ordinal goes back as a whole."""
    found = [(item.text, item.whole) for item in find("On the 20th, MP3s at $5 or 5% and 26°C.")]
    assert found == [("20", "20th"), ("3", "MP3s"), ("5", "$5"), ("5", "5%"), ("26", "26°C")]


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("{a} hat <b>2</b> Hunde auf http://x.y", True),
        ("Auf http://x.y hat {a} <b>2</b> von 7 Hunden", True),  # another order, one number more
        ("{a} hat <b>zwei</b> Hunde auf http://x.y", False),
        ("{a} hat <b>2n</b> Hunde auf http://x.y", False),
        ("{a} hat <b>2 Hunde auf http://x.y", False),
        ("{a} hat </b>2<b> Hunde auf http://x.y", False),
        ("{a} {a} hat <b>2</b> Hunde auf http://x.y", False),  # once too often
        ("{a} hat <b>2</b> Hunde auf http://x.yz", False),
        ("{A} hat <b>2</b> Hunde auf http://x.y", False),
        ("{a} hat <b>2</b> Hunde [auf http://x.y", False),  # a bracket from nowhere
        ("", False),
    ],
)
def test_preserves(translation: str, expected: bool) -> None:
    """Each as often as in the source; only numbers may be more."""
    text = "{a} has <b>2</b> dogs on http://x.y"
    assert preserves(text, find(text), translation) is expected


def test_what_is_part_of_an_address_is_no_unit() -> None:
    """Also where another number stands before it."""
    found = find("3 km and 5http://a.b")
    assert [(each.kind, each.text) for each in found] == [
        ("number", "3"),
        ("number", "5"),
        ("url", "http://a.b"),
    ]
    assert all(one.end <= other.begin for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("number", "translated", "languages", "expected"),
    [
        ("3.5", "3,5", "en de", True),
        ("3.5", "3.5", "en de", True),  # not translated, but there
        ("3.5", "3,5", "en ko", False),
        ("3.5", "35", "en de", False),
        ("3.50", "3,5", "en de", False),
        ("1,234.5", "1.234,5", "en de", True),
        ("1,234", "1234", "en de", True),
        ("1,234", "1.234", "en-US de_DE", True),
        ("1.234", "1.234,0", "en de", False),
        ("1,234", "1\u202f234", "en fr", True),
        ("1.234,5", "1,234.5", "de en", True),
        ("-5", "\u22125", "en ko", True),
        ("-5", "5", "en de", False),
        ("1.2.3", "1,2,3", "en de", False),
        ("3.5", "3,5", "en tlh", False),
    ],
)
def test_numbers_in_two_languages(
    number: str, translated: str, languages: str, expected: bool
) -> None:
    """Equal, digit by digit, read by the rules of each language; or the same characters."""
    source, target = languages.split()
    assert same_number(number, translated, source, target) is expected
    text, translation = f"It is {number} now", f"Es ist {translated} jetzt"
    assert preserves(text, find(text), translation, source=source, target=target) is expected


def test_each_number_counts_once() -> None:
    """One 3,5 cannot stand for both of two numbers."""
    text = "3.5 and 3.5"
    assert preserves(text, find(text), "3,5 und 3.5", source="en", target="de")
    assert not preserves(text, find(text), "3,5 und mehr", source="en", target="de")


def test_kinds_that_need_not_survive() -> None:
    """Dates are translated by losing digits."""
    others = [kind for kind in KINDS if kind != "number"]
    assert find("on 11/20/26", others) == []
    assert preserves("on 11/20/26", [], "2026년", kinds=others)


def test_words() -> None:
    """Whole words where there are spaces between words; anything goes beside Korean."""
    assert as_word("Hund").search("Der Hund.")
    assert not as_word("Hund").search("Hunde")
    assert not as_word("und").search("Hund")
    assert as_word("hund").search("Hund")  # a sentence may begin with it
    assert not as_word("Hund").search("hund")
    assert as_word("개").search("번개가")
    assert as_word("dog").search("dog가")


@given(
    st.text(), st.lists(st.sampled_from(["a", "{x}", "<b>", "5", " ", "http://a.b", "`c`", "한"]))
)
def test_cut_and_put_together(text: str, more: list[str]) -> None:
    """Nothing is lost but that words may get a space between them; a text has its own items."""
    text += "".join(more)
    items = find(text)
    together = put_together(cut(text, items))
    assert re.sub(r"\s", "", together) == re.sub(r"\s", "", text)
    assert preserves(text, items, text)
    assert [item.begin for item in items] == sorted(item.begin for item in items)
    assert all(a.end <= b.begin for a, b in pairwise(items))


def test_has_words() -> None:
    """Something is left to translate."""
    for text, expected in [("5 %", False), ("{x}: 5", False), ("5 dogs", True), ("한 {x}", True)]:
        assert has_words(text, find(text)) is expected


@pytest.mark.parametrize(
    "text", ["{", "<a", "a.", "a/", "a@", "[a](", "1.", "`", "%(", "http://", "**"]
)
def test_no_text_takes_for_ever(text: str) -> None:
    """Of beginnings that never end, four times as many take about four times as long, twice."""

    def seconds(length: int) -> float:
        began = time.process_time()
        find(text * (length // len(text)))
        return time.process_time() - began

    for length in (5_000, 20_000):
        assert seconds(4 * length) < 0.5 + 10 * seconds(length)
