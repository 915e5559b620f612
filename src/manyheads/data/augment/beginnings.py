"""Phrases: beginnings of sentences that are each other's translation.

A corpus of sentences has few texts without a verb, and a model of it answers "a dog" with a whole
sentence. What is typed is a beginning, too, until its end is typed.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product, takewhile

from manyheads.data.augment.text_noise import Pair
from manyheads.errors import RecipeError

WORDS = 4  # longest beginning, in words of a side
LEAST = 5  # sentence pairs that begin with both
ALIKE = 0.5  # Dice coefficient (Dice 1945) of the sentences that begin with each
NEARLY = 0.9  # of the best coefficient: "Je ne vois pas" for "I don't see", not "Je ne vois"

_Partners = dict[str, list[tuple[float, str]]]  # Dice coefficients and texts


def beginnings(sources: list[str], targets: list[str]) -> list[Pair]:
    """Find beginnings of two words and more of which each is the other's likeliest translation.

    Likeliest is what has the largest Dice coefficient with it, above `ALIKE`; of several that
    have nearly the same, the longest: less of the other is missing. For languages with spaces.

    Returns:
        Pairs of beginnings, in the order of the alphabet.
    """
    sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    both: Counter[Pair] = Counter()
    for source, target in zip(sources, targets, strict=True):
        ours, theirs = _begins(source), _begins(target)
        sides[0].update(ours)
        sides[1].update(theirs)
        both.update(product(ours, theirs))
    partners: tuple[_Partners, _Partners] = (defaultdict(list), defaultdict(list))
    for pair, count in both.items():
        dice = 2 * count / (sides[0][pair[0]] + sides[1][pair[1]])
        if count >= LEAST and dice > ALIKE:
            for found, own, other in zip(partners, pair, reversed(pair), strict=True):
                found[own].append((dice, other))
    best = [{own: _likeliest(some) for own, some in each.items()} for each in partners]
    return sorted(pair for pair in best[0].items() if best[1][pair[1]] == pair[0])


def beginning_pairs(
    sources: list[str], targets: list[str], share: float, seed: int
) -> Iterator[Pair]:
    """Yield `share` times as many pairs as there are: beginnings, a quarter with a full stop.

    Raises:
        RecipeError: no beginnings are each other's translation.
    """
    if not (found := beginnings(sources, targets)):
        raise RecipeError(
            f"augment.beginnings: no two phrases begin {LEAST} sentence pairs together, and few "
            "apart: leave it out."
        )
    draw = random.Random(seed)
    for _ in range(round(share * len(sources))):
        stop = draw.choice(("", "", "", "."))
        source, target = draw.choice(found)
        yield f"{source}{stop}", f"{target}{stop}"


def _likeliest(partners: list[tuple[float, str]]) -> str:
    """Return the longest of those that are nearly as likely as the best."""
    least = NEARLY * max(partners)[0]
    return max((len(text), text) for dice, text in partners if dice >= least)[1]


def _begins(text: str) -> list[str]:
    """Return the beginnings of a text, the shortest first, until all of it or a mark."""
    words = text.split()
    plain = sum(1 for _ in takewhile(_without_mark, words[:WORDS]))
    return [" ".join(words[:count]) for count in range(2, min(plain, len(words) - 1) + 1)]


def _without_mark(word: str) -> bool:
    return word[0].isalnum() and word[-1].isalnum()
