"""The everyday sentences that translators are judged by: the form of the tables."""

import re

import pytest

from manyheads.data.text.exclusion import normalised
from scripts.data.everyday import TABLE
from tests.everyday import table


@pytest.mark.parametrize("name", ["english", "korean"])
def test_sixty_different_sentences(name: str) -> None:
    """Each has all its translations; in English, 30 and more have eight words and more."""
    rows = table(name)
    assert len(rows) == 60
    assert all(all(row) for row in rows)
    assert len({normalised(row[1]) for row in rows}) == 60
    if name == "english":
        assert sum(len(row[1].split()) >= 8 for row in rows) >= 30


def test_translators_learn_no_sentence_that_they_are_judged_by() -> None:
    """Nor one in another case, punctuation or spacing, on any side."""
    judged = {
        normalised(cell)
        for name in ("english", "korean")
        for row in table(name)
        for cell in row[1:]
    }
    learned = (
        cell for row in TABLE.read_text(encoding="utf-8").split("\n") for cell in row.split("\t")
    )
    assert not judged & {normalised(cell) for cell in learned}


def test_minimal_pairs_differ_in_one_word() -> None:
    rows = table("minimal_pairs")
    assert len(rows) == len({tuple(row) for row in rows}) == 30
    for _, _, sentence, word, instead in rows:
        assert re.findall(r"\w+", sentence).count(word) == 1, sentence
        assert instead.isalpha()
        assert instead != word
    assert ["bicycle", "horse"] in [row[3:] for row in rows]
