"""Beginnings of sentences that are each other's translation."""

from manyheads.data.augment.beginnings import LEAST, beginning_pairs, beginnings

DOGS = [("A dog runs fast.", "Ein Hund rennt schnell."), ("A dog eats.", "Ein Hund frisst.")]
CATS = [("A cat, and more.", "Eine Katze, und mehr.")]


def sides(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [source for source, _ in pairs], [target for _, target in pairs]


def test_what_begins_the_same_sentences_is_a_pair() -> None:
    """Of "A dog runs" and "A dog" the former has begun fewer sentences than needed."""
    pairs = DOGS * (LEAST - 1)
    assert beginnings(*sides(pairs)) == [("A dog", "Ein Hund")]
    assert beginnings(*sides(DOGS * 2)) == []  # four sentences of five


def test_a_beginning_ends_before_a_mark_and_before_the_end() -> None:
    assert beginnings(*sides(CATS * LEAST)) == []
    assert beginnings(*sides([("A dog.", "Ein Hund.")] * LEAST)) == []


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
    assert list(beginning_pairs(["A dog."], ["Ein Hund."], 1.0, seed=1)) == []
