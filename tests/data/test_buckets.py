"""The batch plan: every pair once, no work on padding, and a pure function of its arguments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data.batching.buckets import length_buckets, rank_part, shuffled
from manyheads.streams import generator

PAIRS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)
SEEDS = st.integers(0, 2**63 - 1)


def sides(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    source, target = np.array(pairs).T
    return source, target


@given(pairs=PAIRS, max_tokens=st.integers(1, 200), seed=SEEDS, epoch=st.integers(0, 1000))
@settings(deadline=None)
def test_every_pair_once_and_within_the_budget(
    pairs: list[tuple[int, int]], max_tokens: int, seed: int, epoch: int
) -> None:
    """Rows x longest sentence of either side <= max_tokens, but for a pair too long by itself."""
    source, target = sides(pairs)
    batches = length_buckets(source, target, max_tokens, seed=seed, epoch=epoch)
    assert sorted(np.concatenate(batches)) == list(range(len(pairs)))
    for batch in batches:
        longest = max(source[batch].max(), target[batch].max())
        assert len(batch) * longest <= max_tokens or len(batch) == 1


@pytest.mark.parametrize(("max_tokens", "rows"), [(20, 4), (24, 4), (25, 5), (4, 1)])
def test_as_many_as_fit(max_tokens: int, rows: int) -> None:
    """Sentences of 5 tokens: full batches, and not one token over the budget."""
    lengths = np.full(20, 5)
    batches = length_buckets(lengths, lengths, max_tokens, seed=1, epoch=0)
    assert {len(batch) for batch in batches} == {rows}


def test_either_side_counts() -> None:
    """A short source with a long target is as large as the target."""
    source, target = np.full(8, 2), np.full(8, 9)
    for one, other in ((source, target), (target, source)):
        batches = length_buckets(one, other, 18, seed=1, epoch=0)
        assert [len(batch) for batch in batches] == [2] * 4


@given(pairs=PAIRS, max_tokens=st.integers(1, 200), seed=SEEDS, epoch=st.integers(0, 1000))
@settings(deadline=None)
def test_the_plan_is_a_pure_function(
    pairs: list[tuple[int, int]], max_tokens: int, seed: int, epoch: int
) -> None:
    """The same arguments give the same batches, whatever was drawn elsewhere in between."""
    source, target = sides(pairs)
    plan = length_buckets(source, target, max_tokens, seed=seed, epoch=epoch)
    np.random.default_rng().random(7)
    again = length_buckets(source.copy(), target.copy(), max_tokens, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in plan] == [batch.tolist() for batch in again]


@given(pairs=PAIRS, max_tokens=st.integers(1, 200), seed=SEEDS)
@settings(deadline=None)
def test_the_batches_are_those_of_the_plain_loop(
    pairs: list[tuple[int, int]], max_tokens: int, seed: int
) -> None:
    """One pair after the other, a new batch where the next would not fit; whole runs rest on it."""
    source, target = sides(pairs)
    random = generator(seed, "order", 3)
    longest = np.maximum(source, target)
    order = np.lexsort((random.random(len(source)), source + target, longest))
    expected: list[list[int]] = [[]]
    for pair in order.tolist():
        if expected[-1] and (len(expected[-1]) + 1) * longest[pair] > max_tokens:
            expected.append([])
        expected[-1].append(pair)
    random.shuffle(expected)
    for dtype in (np.int64, np.int32):
        plan = length_buckets(
            source.astype(dtype), target.astype(dtype), max_tokens, seed=seed, epoch=3
        )
        assert [batch.tolist() for batch in plan] == expected


def test_little_padding() -> None:
    """Sentences of like length share a batch: 5% of padding here, where chance gives over 40%."""
    random = np.random.default_rng(0)
    source = random.integers(1, 60, 2000)
    target = np.maximum(1, source + random.integers(-2, 3, 2000))
    batches = length_buckets(source, target, 1024, seed=1, epoch=0)
    padded = sum(len(batch) * max(source[batch].max(), target[batch].max()) for batch in batches)
    assert 1 - np.maximum(source, target).sum() / padded < 0.05


def test_another_order_each_epoch_and_seed() -> None:
    """Both who shares a batch and when it comes; ties in length are broken by chance."""
    lengths = np.full(32, 5)

    def plan(seed: int, epoch: int) -> list[list[int]]:
        return [
            batch.tolist() for batch in length_buckets(lengths, lengths, 20, seed=seed, epoch=epoch)
        ]

    first, next_epoch, other_seed = plan(1, 0), plan(1, 1), plan(2, 0)
    assert len({str(first), str(next_epoch), str(other_seed)}) == 3
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in next_epoch}


def test_batches_do_not_come_in_order_of_length() -> None:
    """Sorting is for padding only: the model sees short and long batches mixed."""
    lengths = np.repeat(np.arange(1, 33), 4)
    batches = length_buckets(lengths, lengths, 64, seed=1, epoch=0)
    longest = [int(lengths[batch].max()) for batch in batches]
    assert longest not in (sorted(longest), sorted(longest, reverse=True))


@given(count=st.integers(1, 50), size=st.integers(1, 12), seed=SEEDS, epoch=st.integers(0, 1000))
@settings(deadline=None)
def test_shuffled_is_every_example_once(count: int, size: int, seed: int, epoch: int) -> None:
    """Full batches and a rest; the same arguments give the same batches."""
    batches = shuffled(count, size, seed=seed, epoch=epoch)
    assert sorted(np.concatenate(batches)) == list(range(count))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    again = shuffled(count, size, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in batches] == [batch.tolist() for batch in again]


def test_shuffled_differs_by_epoch() -> None:
    """Each epoch and each seed has its own order."""
    orders = {
        str(np.concatenate(shuffled(20, 8, seed=seed, epoch=epoch)))
        for seed, epoch in [(1, 0), (1, 1), (2, 0)]
    }
    assert len(orders) == 3


@given(
    pairs=PAIRS, max_tokens=st.integers(1, 200), world=st.integers(1, 5), seed=SEEDS, epoch=SEEDS
)
@settings(deadline=None)
def test_ranks_share_every_batch(
    pairs: list[tuple[int, int]], max_tokens: int, world: int, seed: int, epoch: int
) -> None:
    """Whatever their number, together they have each batch of the one plan; nobody gets it twice.

    Each part is in the batch's order, and no larger than another by more than one.
    """
    source, target = sides(pairs)
    plan = length_buckets(source, target, max_tokens, seed=seed, epoch=epoch)
    parts = [rank_part(plan, rank, world) for rank in range(world)]
    for batch, *of_ranks in zip(plan, *parts, strict=True):
        order = batch.tolist()
        shared = [part.tolist() for part in of_ranks]
        assert sorted(np.concatenate(of_ranks)) == sorted(order)
        assert all(part == sorted(part, key=order.index) for part in shared)
        assert max(map(len, shared)) - min(map(len, shared)) <= 1


def test_every_rank_gets_some_of_the_long_ones() -> None:
    """A batch is sorted by length, so it is dealt out in turns; one rank alone has all of it."""
    batches = [np.array([4, 2, 7, 1, 9]), np.array([3])]
    assert [part.tolist() for part in rank_part(batches, 0, 2)] == [[4, 7, 9], [3]]
    assert [part.tolist() for part in rank_part(batches, 1, 2)] == [[2, 1], []]
    assert [part.tolist() for part in rank_part(batches, 0, 1)] == [[4, 2, 7, 1, 9], [3]]
