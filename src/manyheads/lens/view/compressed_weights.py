"""Compress the weights of a view for a page; `static/unpack.js` decompresses them."""

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from manyheads.lens.rounding import DECIMALS
from manyheads.lens.view.text_view import MapView

BUDGET = 4_000_000  # characters
LEVELS = (255, 191, 127, 95, 63, 47, 31, 23, 15, 7)  # the most that fit the budget are used


@dataclass(frozen=True)
class Packed:
    """All maps, each the mean and then the heads, row by row.

    Form "decimals" has two bytes per weight, in units of 1/`levels`: first all low bytes, then all
    high bytes. Form "rows" has the largest weight of every row (little-endian float32) and then one
    byte per weight, in units of 1/`levels` of it. Both are deflated (zlib) and encoded in base64.
    """

    form: Literal["decimals", "rows"]
    levels: int
    count: int
    rows: list[tuple[int, int]]  # of every matrix: number of rows and columns
    text: str

    @property
    def rounding(self) -> str:
        """A note on the rounding of weights; "" if there is none."""
        if self.form == "decimals":
            return ""
        return (
            f"This page keeps weights in steps of 1/{self.levels} of the largest in their row; "
            f"the JSON of `manyheads look` has {DECIMALS} decimals."
        )


def pack(maps: Sequence[MapView], budget: int = BUDGET) -> Packed:
    """Write the weights with all decimals, or if they exceed the budget, with as many as fit."""
    matrices = list(_matrices(maps))
    count = sum(matrix.size for matrix in matrices)
    rows = [matrix.shape for matrix in matrices]
    levels = 10**DECIMALS
    whole = [np.rint(levels * matrix).astype(np.uint16).ravel() for matrix in matrices]
    numbers = np.concatenate([np.zeros(0, np.uint16), *whole])
    low_bytes, high_bytes = ((numbers >> shift & 255).astype("u1").tobytes() for shift in (0, 8))
    text = _squeeze(low_bytes + high_bytes)
    if len(text) <= budget:
        return Packed("decimals", levels, count, rows, text)
    # The size grows with the number of levels, so binary search finds the most that fit.
    best, low, high = Packed("rows", LEVELS[-1], count, rows, ""), 0, len(LEVELS)
    while low < high:
        middle = (low + high) // 2
        text = _squeeze(_rows(matrices, LEVELS[middle]))
        if len(text) <= budget:
            best, high = Packed("rows", LEVELS[middle], count, rows, text), middle
        else:
            low = middle + 1
    return best if best.text else replace(best, text=_squeeze(_rows(matrices, best.levels)))


def _matrices(maps: Sequence[MapView]) -> "Iterator[np.ndarray]":
    for found in maps:
        for matrix in (found.mean, *found.weights):
            yield np.asarray(matrix, np.float32).reshape(len(found.rows), len(found.columns))


def _rows(matrices: "Sequence[np.ndarray]", levels: int) -> bytes:
    peaks, steps = [], []
    for matrix in matrices:
        peak = matrix.max(axis=1, initial=0.0, keepdims=True)
        peaks.append(peak.astype("<f4").tobytes())
        steps.append(np.rint(matrix / np.where(peak > 0, peak, 1) * levels).astype("u1").tobytes())
    return b"".join((*peaks, *steps))


def _squeeze(found: bytes) -> str:
    return base64.b64encode(zlib.compress(found, 6)).decode("ascii")
