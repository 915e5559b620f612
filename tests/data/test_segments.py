"""Documents cut into lines and sentences, and joined again without losing a character."""

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.documents.placeholders import KINDS, find
from manyheads.data.documents.segments import join, split_document, split_line, split_long
from manyheads.data.documents.spans import Part
from tests.pages import page


def sentences(line: str, language: str = "") -> list[str]:
    return [part.text for part in split_line(line, language) if not part.kept]


SIGNS = [
    *".!?…。！？ \t\n\r",
    "  ",
    "\r\n",
    "a",
    "A",
    "Dr",
    "z. B",
    "3",
    "3.5",
    "「",
    "」",
    '"',
    "(",
    ")",
]
SIGNS += [
    "<b>",
    "</b>",
    "<br>",
    "{x}",
    "`",
    "```",
    "- ",
    "# ",
    "> ",
    "|",
    "http://a.b/c",
    "🎉",
    "**",
    "é",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(SIGNS)).map("".join)))
def test_nothing_is_lost(text: str) -> None:
    """Split and joined, any text is what it was; lines end at line feeds."""
    lines = split_document(text)
    assert join(lines) == text
    assert len(lines) == text.count("\n") + (not text.endswith("\n") and text != "")
    for part in (part for line in lines for part in line):
        assert part.text
        if not part.kept:
            assert part.text == part.text.strip()
            assert "\n" not in part.text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Abbreviations, initials, numbers.
        ("Dr. Smith met J. R. Brown. He left.", ["Dr. Smith met J. R. Brown.", "He left."]),
        ("Fruit, e.g. apples, costs $3.50. Yes.", ["Fruit, e.g. apples, costs $3.50.", "Yes."]),
        ("See No. 5 on p. 12. No. I won't.", ["See No. 5 on p. 12.", "No.", "I won't."]),
        ("At 5 p.m. he left. At 6 p.m. He ate.", ["At 5 p.m. he left.", "At 6 p.m.", "He ate."]),
        ("The U.S. Army came. So did I. Then?", ["The U.S. Army came.", "So did I.", "Then?"]),
        ("Read file.txt first. Then go.", ["Read file.txt first.", "Then go."]),
        # Quotations, brackets, dots, marks.
        ('"Why?" she asked. "Well." He left.', ['"Why?" she asked.', '"Well."', "He left."]),
        ("He left (at 5. Or 6.) again. Yes.", ["He left (at 5. Or 6.) again.", "Yes."]),
        ("Yes... Maybe... maybe not?! Go!", ["Yes...", "Maybe... maybe not?!", "Go!"]),
        ("Yahoo! is here. Wait! Go.", ["Yahoo! is here.", "Wait!", "Go."]),
        # Other scripts: no space needed, no case to see.
        ("これは本です。はい！", ["これは本です。", "はい！"]),
        ("「そうですか。はい。」と言った。本。", ["「そうですか。はい。」と言った。", "本。"]),
        ("今天3.5度吗？“是的。”他说。", ["今天3.5度吗？", "“是的。”他说。"]),
        ("안녕하세요. 3.5도입니다. 정말요?", ["안녕하세요.", "3.5도입니다.", "정말요?"]),
        # Placeholders and tags.
        (
            "See http://a.b/c. {name} left. <b>He</b> ate.",
            ["See http://a.b/c.", "{name} left.", "<b>He</b> ate."],
        ),
        (
            "Run `a. B`. [One. Two](http://x.y) more.",
            ["Run `a. B`.", "[One. Two](http://x.y) more."],
        ),
    ],
)
def test_sentences(line: str, expected: list[str]) -> None:
    """Where a sentence ends, and where it only seems to."""
    assert sentences(line) == expected


def calls(function: Callable[[], object]) -> int:
    """Count the calls and returns inside a function."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_a_long_line() -> None:
    """Eight times the sentences take about eight times as many calls, not 64 times."""

    def split(sentences: int) -> int:
        line = "It is `so` (see there). Look at <b>this</b>!\t" * sentences
        return calls(lambda: split_line(line, "en"))

    assert split(2400) < 10 * split(300)


def test_ordinal_numbers_belong_to_a_language() -> None:
    """German writes the third as 3. and English does not."""
    assert sentences("Am 3. Oktober, z. B. um 5. Ja.", "de") == ["Am 3. Oktober, z. B. um 5. Ja."]
    assert sentences("He is 12. She is 13.", "en") == ["He is 12.", "She is 13."]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    - [x] Done. And this.\r\n", ["Done.", "And this."]),
        ("> > ## Title\n", ["Title"]),
        ("\ufeff3) Three\tFour   Five", ["Three", "Four", "Five"]),
        ("| Name | **Bold** | 3.5 |", ["Name", "Bold"]),
        ("<ul><li>One. Two.</li><li class='x'>Three</li></ul>", ["One.", "Two.", "Three"]),
        ("🎉 <b>Party.</b> <i>Long</i> night. 🎉", ["Party.", "<i>Long</i> night."]),
        ("One<br/>Two", ["One", "Two"]),
        ("See [the house](http://a.b)", ["See [the house](http://a.b)"]),
        ("- ![A house](http://a.b)", ["A house"]),
        ("A ![house](http://a.b)", ["A ![house](http://a.b)"]),
    ],
)
def test_what_is_not_text_stays_outside(line: str, expected: list[str]) -> None:
    """Bullets, cells, tags around a whole sentence."""
    assert sentences(line) == expected


@pytest.mark.parametrize(
    "line",
    ["", "\n", " \t\r\n", "---", "|:--|--:|", "3.5", "- 2026-11-20", "https://a.b", "{x} 🎉"],
)
def test_nothing_to_translate(line: str) -> None:
    """What has no words is kept as it is."""
    assert sentences(line) == []


def test_dates_in_digits_are_words_if_numbers_need_not_survive() -> None:
    """For a model that translates them."""
    line = split_line("- 2026-11-20", kinds=[kind for kind in KINDS if kind != "number"])
    assert [part.text for part in line if not part.kept] == ["2026-11-20"]


def test_code_between_fences() -> None:
    """Kept up to a fence of the same kind and at least the same length."""
    text = "One.\n````python\nTwo.\n```\nThree.\n````\nFour.\n~~~\nFive."
    found = [part.text for line in split_document(text) for part in line if not part.kept]
    assert found == ["One.", "Four."]


def test_long_sentences() -> None:
    """Divided at the best place near the middle, never inside an item, until all are short."""

    def shorter(text: str, limit: int) -> list[str]:
        parts = split_long(Part(text, kept=False), limit, len)
        assert "".join(part.text for part in parts) == text
        return [part.text for part in parts if not part.kept]

    assert shorter("one, two three; four, five six", 30) == ["one, two three; four, five six"]
    assert shorter("one, two three; four, five six", 20) == ["one, two three;", "four, five six"]
    assert shorter("one, two three; four, five six", 14)[:2] == ["one,", "two three;"]
    assert shorter("가나다라마바사아자차", 5) == ["가나다라마", "바사아자차"]
    assert shorter("一二三、四五六七八", 5) == ["一二三、", "四五六七八"]
    assert shorter("a https://example.com/very/long b", 8)[1] == "https://example.com/very/long"
    assert all(len(text) <= 40 for text in shorter("word " * 500, 40))


def test_long_sentences_with_many_items() -> None:
    """Eight times the words take about 11 times as many calls (n log n), not 64 times."""

    def split(count: int) -> int:
        part = Part("word 5 " * count, kept=False)
        assert len(split_long(part, 40, len)) > count / 4
        return calls(lambda: split_long(part, 40, len))

    assert split(4000) < 16 * split(500)


WRAPPED = """\
A man in a blue shirt is standing on a ladder, and is
cleaning a window. Two dogs are running in the park, and
a girl looks at them.
"""


@pytest.mark.parametrize("prefix", ["", "    ", "> ", "- "])
def test_wrapped_lines_are_one_paragraph(prefix: str) -> None:
    """With the indentation or the quotation marks of its first line."""
    rest = prefix.replace("-", " ")
    text = prefix + WRAPPED.strip().replace("\n", f"\n{rest}")
    (line,) = split_document(text)
    assert [part.sentence for part in line if not part.kept] == [
        "A man in a blue shirt is standing on a ladder, and is cleaning a window.",
        "Two dogs are running in the park, and a girl looks at them.",
    ]
    assert join([line]) == text


@pytest.mark.parametrize(
    "text",
    [
        WRAPPED.lower(),  # a corpus of small letters may have a sentence a line
        WRAPPED.replace("on a ladder, and is", "up"),  # there was room for another word
        WRAPPED.replace("cleaning", "Cleaning").replace("a girl", "A girl"),
        WRAPPED.replace("cleaning", "- cleaning"),
        WRAPPED.replace(" is ", "\tis "),
        "Apples\nand pears\n",
    ],
)
def test_lines_below_each_other_are_lines(text: str) -> None:
    """What was not wrapped is not joined."""
    assert len(split_document(text)) == text.count("\n")


def test_wrapped_lines_of_other_scripts() -> None:
    """Chinese and Japanese have no spaces, Korean has; none has small letters."""
    for character, space in (("語", ""), ("말", " ")):
        text = f"{character * 45}\n{character * 45}\n{character * 9}"
        (line,) = split_document(text)
        assert line[0].sentence == text.replace("\n", space)


def test_a_page() -> None:
    """All sentences of the test document, and each of its items in one of its parts."""
    text = page()
    parts = [part for line in split_document(text) for part in line]
    assert sum(not part.kept for part in parts) > 500
    for kind in ("url", "email", "placeholder", "code", "emoji", "file"):
        inside = [item.text for part in parts for item in find(part.text) if item.kind == kind]
        assert inside == [i.text for line in text.split("\n") for i in find(line) if i.kind == kind]
