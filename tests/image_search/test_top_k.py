"""Exact search: equal to scoring every row in float64, whatever ties there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.image_search.top_k import top_k


def unit(values: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def brute_force(
    vectors: np.ndarray, query: np.ndarray, k: int, excluded: list[int]
) -> list[tuple[int, float]]:
    """Score every row by itself, and sort them all."""
    scores = [float((row.astype(np.float64) * query).sum()) for row in vectors]
    rows = [row for row in range(len(vectors)) if row not in excluded]
    return [(row, scores[row]) for row in sorted(rows, key=lambda row: (-scores[row], row))[:k]]


def test_by_hand() -> None:
    """Cosines of 0, 60 and 90 degrees; the row that points away comes last."""
    vectors = np.array([[0, 1], [1, 0], [0.5, 0.75**0.5], [-1, 0]], dtype=np.float32)
    ((rows, scores),) = top_k(vectors, vectors[1:2], 4)
    assert rows.tolist() == [1, 2, 0, 3]
    assert scores.tolist() == [1, 0.5, 0, -1]


@given(
    rows=st.integers(0, 60),
    dim=st.integers(1, 40),
    k=st.integers(1, 70),
    queries=st.integers(1, 3),
    different=st.integers(1, 60),
    seed=st.integers(0, 1000),
)
def test_equal_to_brute_force(
    rows: int, dim: int, k: int, queries: int, different: int, seed: int
) -> None:
    """With several equal vectors, and some excluded."""
    random = np.random.default_rng(seed)
    distinct = unit(random.standard_normal((different, dim)))
    vectors = distinct[random.integers(0, different, rows)]
    wanted = unit(random.standard_normal((queries, dim)))
    excluded = np.flatnonzero(random.random(rows) < 0.3)
    found = top_k(vectors, wanted, k, excluded if len(excluded) else None)
    for query, (best, scores) in zip(wanted, found, strict=True):
        pairs = list(zip(best.tolist(), scores.tolist(), strict=True))
        assert pairs == brute_force(vectors, query, k, excluded.tolist())


@pytest.mark.parametrize("sign", [1, -1])
def test_vectors_may_be_a_hundredth_too_long(sign: int) -> None:
    """Stored in half precision, they are unit vectors but for rounding; longer ones are damaged."""
    query = np.array([[1, 0]], dtype=np.float32)
    ((rows, _),) = top_k(sign * 1.009 * query, query, 1)
    assert rows.tolist() == [0]
    with pytest.raises(DataError, match="not within -1 and 1"):
        top_k(sign * 1.011 * query, query, 1)


def test_equal_vectors_are_found_in_the_order_of_their_rows() -> None:
    """Wherever they stand: sums in float32 round differently in other places of a matrix."""
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((5000, 61)))
    same = random.choice(5000, 40, replace=False)
    vectors[same] = vectors[same[0]]
    for query in unit(vectors[same[0]] + 0.01 * random.standard_normal((20, 61))):
        ((rows, scores),) = top_k(vectors, query[None], 40)
        assert rows.tolist() == sorted(same.tolist())
        assert len(set(scores.tolist())) == 1


def test_many_queries_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are those of one at a time."""
    vectors = unit(np.random.default_rng(1).standard_normal((50, 8)))
    alone = [top_k(vectors, query[None], 5)[0] for query in vectors]
    for scores in (1, 120, 1 << 20):
        monkeypatch.setattr("manyheads.image_search.top_k.SCORES", scores)
        together = top_k(vectors, vectors, 5)
        for (rows, values), (other_rows, other_values) in zip(alone, together, strict=True):
            assert rows.tolist() == other_rows.tolist()
            assert values.tolist() == other_values.tolist()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 3.0])
def test_damaged_vectors(wrong: float) -> None:
    """A score that no vectors of length 1 have is not sorted among the others."""
    vectors = unit(np.random.default_rng(2).standard_normal((20, 4)))
    query = vectors[:1].copy()
    vectors[7] = wrong
    with pytest.raises(DataError, match="not within -1 and 1"):
        top_k(vectors, query, 3)
