"""CTC: paths of columns, and the sequences they stand for."""

import math
from collections import defaultdict
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decode.ctc import best_path, prefix_search

BLANK = 0


def collapse(path: tuple[int, ...]) -> tuple[int, ...]:
    """Merge repeated ids, then drop blanks: B of Graves et al. 2006, section 3.1."""
    merged = [id for place, id in enumerate(path) if place == 0 or path[place - 1] != id]
    return tuple(id for id in merged if id != BLANK)


def sums(log_probabilities: Tensor) -> dict[tuple[int, ...], float]:
    """The probability of every sequence, by listing every path."""
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    columns, vocabulary = log_probabilities.shape
    for path in product(range(vocabulary), repeat=columns):
        probability = math.exp(
            sum(log_probabilities[column, id].item() for column, id in enumerate(path))
        )
        found[collapse(path)] += probability
    return dict(found)


def test_repeats_are_merged_and_blanks_dropped() -> None:
    """a a - a b b is a a b: a blank between two of the same keeps both."""
    ids = [1, 1, 0, 1, 2, 2]
    table = torch.full((6, 3), 0.1).scatter(1, torch.tensor(ids)[:, None], 0.8).log()
    found = best_path(table, BLANK)
    assert found.ids == (1, 1, 2)
    assert found.probabilities == pytest.approx((0.8, 0.8, 0.8))
    assert found.score == pytest.approx(6 * math.log(0.8))


def test_a_sequence_adds_up_its_paths() -> None:
    """Blank .6 and a .4, twice: the best path, blank blank, has .36; a has 2 * .24 + .16 = .64."""
    table = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).log()
    assert best_path(table, BLANK).ids == ()
    assert math.exp(best_path(table, BLANK).score) == pytest.approx(0.36)
    first, second = prefix_search(table, BLANK, beams=4)
    assert first.ids == (1,)
    assert math.exp(first.score) == pytest.approx(0.64)
    assert second.ids == ()
    assert math.exp(second.score) == pytest.approx(0.36)


def test_twice_the_same_takes_a_blank_between() -> None:
    """In two columns there is no place for a a, in three its only path is a - a."""
    table = torch.tensor([[0.5, 0.5]] * 3).log()
    found = {each.ids: math.exp(each.score) for each in prefix_search(table, BLANK, beams=8)}
    assert found[1, 1] == pytest.approx(0.125)
    assert (1, 1) not in {each.ids for each in prefix_search(table[:2], BLANK, beams=8)}


@given(st.integers(1, 5), st.integers(2, 4), st.integers(0, 2**31))
def test_a_wide_search_finds_every_sequence_with_its_probability(
    columns: int, vocabulary: int, seed: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    table = torch.randn(columns, vocabulary, generator=random).log_softmax(dim=-1)
    wanted = sums(table)
    found = prefix_search(table, BLANK, beams=2000)
    assert {each.ids for each in found} == wanted.keys()
    for each in found:
        assert math.exp(each.score) == pytest.approx(wanted[each.ids], abs=1e-6)
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)


def test_no_columns() -> None:
    assert best_path(torch.zeros(0, 3), BLANK).ids == ()
    assert [each.ids for each in prefix_search(torch.zeros(0, 3), BLANK, beams=2)] == [()]
