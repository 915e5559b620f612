"""Hold sentences out of training: those with one source, up to case and punctuation, together."""

from collections.abc import Sequence

from manyheads.data.text.exclusion import normalised
from manyheads.errors import DataError
from manyheads.streams import generator


def near_key(text: str) -> str:
    """Return what near-duplicates share: letters and digits, without case, marks and spaces.

    Examples:
        >>> near_key("It's  ME!") == near_key("its me")
        True
    """
    return normalised(text) or text


def hold_out(sources: Sequence[str], count: int, seed: int) -> tuple[list[int], list[int]]:
    """Split indices into the rest and at least `count` held out, both in order.

    A group of near-duplicate sources is on one side, so no held-out source was trained on.

    Raises:
        DataError: too few groups, so nothing would be left on one side.
    """
    keys = list(map(near_key, sources))
    groups = list(dict.fromkeys(keys))
    sizes = dict.fromkeys(groups, 0)
    for key in keys:
        sizes[key] += 1
    held: set[str] = set()
    taken = 0
    for index in generator(seed, "hold-out").permutation(len(groups)):
        if taken >= count:
            break
        held.add(groups[index])
        taken += sizes[groups[index]]
    if taken < count or len(held) == len(groups):
        raise DataError(
            f"{count:,} pairs cannot be held out of {len(sources):,}, which have {len(groups):,} "
            "different sources: hold out fewer."
        )
    parts: tuple[list[int], list[int]] = ([], [])
    for index, key in enumerate(keys):
        parts[key in held].append(index)
    return parts
