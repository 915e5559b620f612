"""The phrases of the Korean translators: their numbers agree, and none is a test sentence."""

import re
from pathlib import Path

from manyheads.data.text.exclusion import normalised
from scripts.data.phrases import drawn, english_count, korean_count, written

EVERYDAY = Path(__file__).parents[1] / "benchmarks" / "everyday"


def test_no_phrase_is_one_of_the_sixty_everyday_sentences() -> None:
    tables = [EVERYDAY / "english.tsv", EVERYDAY / "korean.tsv"]
    sentences = {
        normalised(cell)
        for table in tables
        for line in table.read_text(encoding="utf-8").splitlines()[1:]
        for cell in line.split("\t")
    }
    assert len(sentences) > 200
    taught = {normalised(side) for pair in (*written(), *drawn()) for side in pair}
    assert not sentences & taught


def test_the_digits_of_both_sides_are_the_same() -> None:
    """But for the months, which Korean counts."""
    checked = 0
    for english, korean in drawn():
        ours, theirs = (re.findall(r"\d+", side.replace(",", "")) for side in (english, korean))
        if re.search(r"\d월", korean):
            theirs = theirs[:1] + theirs[2:] if "년" in korean else theirs[1:]
            ours = sorted(ours)
            theirs = sorted(theirs)
        if re.search(r"(?<!\d)\d{1,2}:00", english):
            continue
        ours, theirs = ([str(int(each)) for each in side] for side in (ours, theirs))
        if ours and theirs:
            checked += 1
            assert ours == theirs, (english, korean)
    assert checked > 1500


def test_numbers_in_words() -> None:
    """Korean counts tens and ones with its own words, and some are shorter before a noun."""
    assert [korean_count(n) for n in (1, 2, 10, 11, 20, 21, 30, 99)] == [
        *("한", "두", "열", "열한", "스무", "스물한", "서른", "아흔아홉"),
    ]
    assert [english_count(n) for n in (1, 10, 19, 20, 21, 99)] == [
        *("one", "ten", "nineteen", "twenty", "twenty-one", "ninety-nine"),
    ]
    ages = {korean_count(n) for n in range(1, 100)}
    assert len(ages) == 99
