"""Check from lengths and numbers whether the two sides of a corpus are aligned line by line."""

from typing import NamedTuple

import numpy as np


class Shift(NamedTuple):
    """Pairs [start, end) where source i belongs to target i + lag."""

    start: int
    end: int
    lag: int


Sides = tuple[np.ndarray, np.ndarray]  # of each pair a number for its source and its target
_LAGS = (-3, -2, -1, 1, 2, 3)
_BLOCK = 100_000  # lines searched together for shifts


def unlike_lengths(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the indices of pairs with an unusual ratio of lengths in characters.

    The logarithm of the ratio is compared with its median over the corpus; 10 is added to each
    length, because the ratios of short texts vary most.
    """
    ratio = np.log((target + 10.0) / (source + 10.0))
    deviation = np.abs(ratio - np.median(ratio))
    return np.flatnonzero(deviation > max(6 * 1.4826 * np.median(deviation), np.log(3)))


def find_shifts(lengths: Sides, numbers: Sides) -> list[Shift]:
    """Find ranges of lines that fit better when one side is shifted by up to three lines.

    Lengths of translations correlate (Gale and Church 1993, "A program for aligning sentences in
    bilingual corpora"), and numbers are copied. The gain of a lag over lag 0 is a log-likelihood
    ratio for each line; a range is the run of lines with the largest sum of gains.

    Args:
        lengths: number of characters of each text, for both sides.
        numbers: a digest of the numbers in each text; 0 if it has none.
    """
    shifts: list[Shift] = []
    for offset in range(0, len(lengths[0]), _BLOCK):
        block = slice(offset, offset + _BLOCK)
        parts = ([each[block] for each in sides] for sides in (lengths, numbers))
        for start, end, lag in _shifts_in(*parts):
            first = start + offset
            if shifts and shifts[-1].lag == lag and first - shifts[-1].end < 10:
                first = shifts.pop().start
            shifts.append(Shift(first, end + offset, lag))
    return shifts


def _shifts_in(lengths: list[np.ndarray], numbers: list[np.ndarray]) -> list[Shift]:
    logs = [np.log(side + 1.0) for side in lengths]
    difference = np.median(logs[1]) - np.median(logs[0])
    misfits = {0: np.abs(logs[1] - logs[0] - difference)}
    for lag in _LAGS:
        misfits[lag] = np.abs(_moved(logs[1], lag, np.inf) - logs[0] - difference)
    spread = max(0.1, 1.4826 * min(float(np.median(misfit)) for misfit in misfits.values()))

    def score(lag: int) -> np.ndarray:
        same = (numbers[0] == _moved(numbers[1], lag, 0)) & (numbers[0] != 0)
        return 4.0 * same - np.minimum((misfits[lag] / spread) ** 2, 9.0) / 2

    level = score(0)
    gains = {lag: score(lag) - level for lag in _LAGS}
    shifts: list[Shift] = []
    while len(shifts) < 20:
        gain, start, end, lag = max((*_largest_sum(gain), lag) for lag, gain in gains.items())
        if gain < max(25.0, 0.7 * (end - start)) or end - start < 8:
            break
        shifts.append(Shift(start, end, lag))
        for values in gains.values():
            values[start:end] = -9.0
    return sorted(shifts)


def _moved(values: np.ndarray, lag: int, missing: float) -> np.ndarray:
    """Return values[i + lag] at each i; `missing` beyond the ends."""
    count, ahead, behind = len(values), max(0, lag), max(0, -lag)
    moved = np.full(count, missing, dtype=np.result_type(values, type(missing)))
    if abs(lag) < count:
        moved[behind : count - ahead] = values[ahead : count - behind]
    return moved


def _largest_sum(values: np.ndarray) -> tuple[float, int, int]:
    """Return the maximum sum of a run of values, with its start and its end (exclusive)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    gains = sums[1:] - np.minimum.accumulate(sums[:-1])
    end = int(np.argmax(gains)) + 1
    start = end - 1 - int(np.argmin(sums[:end][::-1]))  # the shortest such run
    return float(gains[end - 1]), start, end
