"""Holding pairs out of training by their sources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.text.exclusion import hold_out, near_key
from manyheads.errors import DataError


@given(st.lists(st.sampled_from(["a", "A", "a!", "b", "B b", "bb", "c", "d", "..."]), min_size=9))
def test_every_pair_is_on_one_side_with_all_like_it(sources: list[str]) -> None:
    """A partition, in order, of at least as many as were asked for."""
    if len({near_key(each) for each in sources}) < 3:
        return
    try:
        rest, held = hold_out(sources, 2, seed=3)
    except DataError:  # one group may have nearly all of them
        return
    assert sorted([*rest, *held]) == list(range(len(sources)))
    assert (rest, held) == (sorted(rest), sorted(held))
    assert len(held) >= 2
    assert not {near_key(sources[n]) for n in rest} & {near_key(sources[n]) for n in held}


def test_a_seed_chooses() -> None:
    """The same again for the same seed."""
    sources = [f"sentence {n}" for n in range(50)]
    assert hold_out(sources, 5, 1) == hold_out(sources, 5, 1) != hold_out(sources, 5, 2)


def test_too_few_sources() -> None:
    """Ten times one sentence cannot be on both sides."""
    with pytest.raises(DataError, match=r"10.*1 different"):
        hold_out(["So be it."] * 10, 2, 1)
