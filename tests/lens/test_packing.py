"""Weights as few bytes: nothing is lost that can be kept, and what is lost is bounded and said."""

import base64
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyheads.lens.view.compressed_weights import LEVELS, Packed, pack
from manyheads.lens.view.text_view import MapView, map_view
from manyheads.nn.recording.trace import LayerId


def map_of(weights: torch.Tensor) -> MapView:
    _, rows, columns = weights.shape
    return map_view(
        LayerId(), weights, rows=["r"] * rows, columns=["c"] * columns, what="to something"
    )


def random_map(seed: int, heads: int, rows: int, columns: int, sharp: float = 3.0) -> MapView:
    generator = torch.Generator().manual_seed(seed)
    scores = sharp * torch.randn(heads, rows, columns, generator=generator)
    return map_of(scores.exp() / scores.exp().sum(dim=-1, keepdim=True))


def unpack(packed: Packed) -> "np.ndarray[Any, Any]":
    """What `static/unpack.js` does."""
    found = np.frombuffer(zlib.decompress(base64.b64decode(packed.text)), np.uint8)
    if packed.form == "decimals":
        low, high = found.reshape(2, -1).astype(np.int64)
        return (low + 256 * high) / packed.levels
    rows = sum(many for many, _ in packed.rows)
    peaks = np.frombuffer(found[: 4 * rows].tobytes(), "<f4")
    lengths = np.repeat([width for _, width in packed.rows], [many for many, _ in packed.rows])
    return np.repeat(peaks, lengths) * found[4 * rows :] / packed.levels


def flat(maps: list[MapView]) -> "np.ndarray[Any, Any]":
    return np.concatenate(
        [np.ravel(matrix) for found in maps for matrix in (found.mean, *found.weights)]
    )


def test_by_hand() -> None:
    """Two bytes a weight, first the low ones: 10000 = 39 * 256 + 16, 5000 = 19 * 256 + 136."""
    packed = pack([map_of(torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]))])
    one = [16, 0, 136, 136]
    high = [39, 0, 19, 19]
    assert list(zlib.decompress(base64.b64decode(packed.text))) == [*one, *one, *high, *high]
    assert (packed.form, packed.levels, packed.count) == ("decimals", 10_000, 8)
    assert packed.rows == [(2, 2), (2, 2)]  # the mean, and the one head
    assert packed.rounding == ""


@given(
    seed=st.integers(0, 100),
    heads=st.integers(1, 3),
    rows=st.integers(1, 4),
    columns=st.integers(1, 5),
)
def test_all_decimals_survive(seed: int, heads: int, rows: int, columns: int) -> None:
    """What a view says, the page says."""
    maps = [random_map(seed, heads, rows, columns), random_map(seed + 1, 1, columns, rows)]
    packed = pack(maps)
    assert packed.form == "decimals"
    assert np.array_equal(unpack(packed), flat(maps))


def test_a_budget_costs_decimals_and_says_so() -> None:
    """Half a step of the largest weight in its row at most; the sentence names the step."""
    maps = [random_map(0, 4, 20, 30), random_map(1, 2, 7, 5)]
    whole = len(pack(maps).text)
    packed = pack(maps, budget=whole // 2)
    assert packed.form == "rows"
    assert len(packed.text) <= whole // 2
    peaks = np.concatenate(
        [
            np.repeat(np.max(matrix, axis=1), np.shape(matrix)[1])
            for found in maps
            for matrix in (found.mean, *found.weights)
        ]
    )
    error = np.abs(unpack(packed) - flat(maps))
    assert (error <= peaks / packed.levels / 2 + 1e-7).all()
    assert error.max() > 0
    assert f"1/{packed.levels} of the largest in their row" in packed.rounding


def test_a_budget_that_nothing_meets_gives_the_least() -> None:
    assert pack([random_map(0, 1, 4, 4)], budget=1).levels == LEVELS[-1]


def test_a_view_without_maps() -> None:
    """A recurrent model without attention has a page as well."""
    packed = pack([])
    assert (packed.count, packed.rows) == (0, [])
    assert unpack(packed).size == 0


@pytest.mark.parametrize("weights", [[[[0.0, 0.0]]]])
def test_rows_with_nothing_to_attend_to_stay_empty(weights: list[list[list[float]]]) -> None:
    packed = pack([map_of(torch.tensor(weights))], budget=1)
    assert unpack(packed).tolist() == [0.0] * 4
