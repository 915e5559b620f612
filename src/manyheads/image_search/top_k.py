"""Exact search: the rows of a matrix with the largest dot products, ties in the order of rows."""

import numpy as np

from manyheads.errors import DataError

UNIT = 2.0**-24  # rounding of float32
BLOCK = 1 << 14  # rows that are scored in float64 at a time
SCORES = 1 << 26  # scores held at a time, in float32
LONGEST = 1.01  # of a vector that is normalised


def top_k(
    vectors: np.ndarray, queries: np.ndarray, k: int, excluded: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Find the k rows with the largest dot products with each query.

    The scores are those of float64, so that equal vectors have equal scores: float32 chooses the
    candidates, with a margin of twice the error that its sums can have.

    Args:
        vectors: (row, dim) float32, of unit length; may be a memory map.
        queries: (query, dim) float32, of unit length.
        k: how many rows; fewer are found if there are fewer.
        excluded: numbers of rows that are not to be found.

    Returns:
        For each query its rows, best first, and their scores; of equal scores the first row first.

    Raises:
        DataError: a score that unit vectors cannot have: the vectors are damaged.
    """
    found = []
    together = max(1, SCORES // max(1, len(vectors)))
    for first in range(0, len(queries), together):
        part = queries[first : first + together]
        with np.errstate(invalid="ignore", over="ignore"):  # of damaged vectors
            # A product with one vector reads the matrix once and is as fast as memory.
            scores = vectors @ part[0] if len(part) == 1 else vectors @ part.T
        for query, column in zip(part, scores.reshape(len(vectors), len(part)).T, strict=True):
            found.append(_best(vectors, query, np.ascontiguousarray(column), k, excluded))
    return found


def _best(
    vectors: np.ndarray, query: np.ndarray, scores: np.ndarray, k: int, excluded: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Choose the best rows by their float32 scores, and score them in float64."""
    lowest, highest = scores.min(initial=0), scores.max(initial=0)
    if not (lowest >= -LONGEST and highest <= LONGEST):  # also if one is NaN
        raise DataError(f"the scores of a query are {lowest} to {highest}, not within -1 and 1")
    if excluded is not None:
        scores[excluded] = -np.inf
    k = min(k, len(scores) - (0 if excluded is None else len(excluded)))
    if k < 1:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    # |error| <= n u / (1 - n u) * |a| * |b| of a sum of n products (Higham 2002, eq. 3.5).
    terms = len(query) * UNIT
    margin = 2 * terms / (1 - terms) * LONGEST**2
    least = np.partition(scores, -k)[-k] - margin
    rows = np.flatnonzero(scores >= least)
    blocks = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
    scored = [(vectors[block].astype(np.float64) * query).sum(axis=1) for block in blocks]
    exact = np.concatenate(scored)
    order = np.lexsort((rows, -exact))[:k]
    return rows[order], exact[order]
