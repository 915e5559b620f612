"""Phrases: beginnings of sentences that are each other's translation.

A corpus of sentences has few texts without a verb, and a model of it answers "a dog" with a whole
sentence. What is typed is a beginning, too, until its end is typed.
"""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile

from manyheads.data.augment.text_noise import Pair

WORDS = 4  # longest beginning, in words of a side
LEAST = 5  # sentence pairs that begin with both
ALIKE = 0.5  # Dice coefficient (Dice 1945) of the sentences that begin with each


def beginnings(sources: list[str], targets: list[str]) -> list[Pair]:
    """Find beginnings of two words and more that occur together more often than apart.

    Both have as many words, so that little of one is missing in the other.

    Args:
        sources: sentences.
        targets: their translations.

    Returns:
        Pairs of beginnings, each of them in one pair at most; the surest first.
    """
    sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    both: Counter[Pair] = Counter()
    for source, target in zip(sources, targets, strict=True):
        ours, theirs = _begins(source), _begins(target)
        sides[0].update(ours)
        sides[1].update(theirs)
        both.update(zip(ours, theirs, strict=False))
    scored = [
        (2 * count / (sides[0][pair[0]] + sides[1][pair[1]]), pair)
        for pair, count in both.items()
        if count >= LEAST
    ]
    taken: tuple[set[str], set[str]] = (set(), set())
    found = []
    for _, pair in sorted((each for each in scored if each[0] > ALIKE), key=_surest):
        if pair[0] not in taken[0] and pair[1] not in taken[1]:
            taken[0].add(pair[0])
            taken[1].add(pair[1])
            found.append(pair)
    return found


def beginning_pairs(
    sources: list[str], targets: list[str], share: float, seed: int
) -> Iterator[Pair]:
    """Yield `share` times as many pairs as there are: beginnings, half of them with a full stop."""
    found = beginnings(sources, targets)
    draw = random.Random(seed)
    for _ in range(round(share * len(sources)) if found else 0):
        stop = draw.choice(("", "."))
        source, target = draw.choice(found)
        yield f"{source}{stop}", f"{target}{stop}"


def _begins(text: str) -> list[str]:
    """Return the beginnings of a text, the shortest first, until all of it or a mark."""
    words = text.split()[: WORDS + 1]
    every = (" ".join(words[:count]) for count in range(2, len(words)))
    return list(takewhile(lambda begin: begin[-1].isalnum(), every))


def _surest(scored: tuple[float, Pair]) -> tuple[float, int, Pair]:
    score, pair = scored
    return -score, -len(pair[0]), pair
