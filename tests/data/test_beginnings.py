"""Beginnings of sentences that are each other's translation."""

import pytest

from manyheads.data.augment.beginnings import LEAST, beginning_pairs, beginnings
from manyheads.errors import RecipeError

DOGS = [("A dog runs fast.", "Ein Hund rennt schnell."), ("A dog eats.", "Ein Hund frisst.")]


def sides(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [source for source, _ in pairs], [target for _, target in pairs]


def test_what_begins_the_same_sentences_is_a_pair() -> None:
    """ "A dog runs" begins fewer of them than needed."""
    pairs = DOGS * (LEAST - 1)
    assert beginnings(*sides(pairs)) == [("A dog", "Ein Hund")]
    assert beginnings(*sides(DOGS * 2)) == []  # four sentences of five


def test_each_is_the_best_of_the_other_however_many_words_it_has() -> None:
    """ "La nuit" begins other sentences, too; of equals, the longer one is more of the other."""
    night = [("Last night it rained.", "La nuit dernière il a plu.")] * LEAST
    other = [(f"Nights {n} are long.", "La nuit est longue.") for n in range(LEAST)]
    assert beginnings(*sides(night + other))[0] == ("Last night it", "La nuit dernière il")
    more = [("Last night he came.", "La nuit dernière elle dormait.")] * LEAST
    assert ("Last night", "La nuit dernière") in beginnings(*sides(night + other + more))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("A dog.", "Ein Hund."),  # all of it
        ("Cats, and more.", "Katzen, und mehr."),
        ("Yes, I do it.", "Ja, ich tue es."),
        ('"Where is" it?', "„Wo ist“ es?"),
        ("", ""),
    ],
)
def test_a_beginning_ends_before_a_mark_and_before_the_end(source: str, target: str) -> None:
    assert beginnings([source] * LEAST, [target] * LEAST) == []


def test_what_begins_other_sentences_as_often_is_none() -> None:
    """Dice of "I have" and "Ich habe": 2 * 5 / (9 + 5); with six more 2 * 5 / (15 + 5)."""
    own = [("I have one.", "Ich habe einen.")] * LEAST
    other = [(f"I have been {n}.", f"Dort{n} war ich.") for n in range(10)]
    assert beginnings(*sides(own + other[:4])) == [("I have", "Ich habe")]
    assert beginnings(*sides(own + other)) == []


def test_share_and_full_stops() -> None:
    pairs = list(beginning_pairs(*sides(DOGS * 50), 0.4, seed=1))
    assert len(pairs) == 40
    assert {source.endswith(".") for source, _ in pairs} == {True, False}
    assert all(source.endswith(".") == target.endswith(".") for source, target in pairs)
    with pytest.raises(RecipeError, match="leave it out"):
        list(beginning_pairs(["A dog."], ["Ein Hund."], 1.0, seed=1))
