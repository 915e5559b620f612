"""Whether the two sides of a corpus belong together line by line, from lengths and numbers."""

from typing import NamedTuple

import numpy as np


class Shift(NamedTuple):
    """Pairs from index `start` to before `end`, where source i belongs to target i + lag."""

    start: int
    end: int
    lag: int


_LAGS = (-3, -2, -1, 1, 2, 3)
_BLOCK = 100_000  # lines looked at together for shifts


def unlike_lengths(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the indices of pairs whose lengths in characters are unlike those of the others.

    Compared is the logarithm of the ratio with its median over the corpus; the 10 added to each
    length forgive short texts, whose ratios vary most.
    """
    ratio = np.log((target + 10.0) / (source + 10.0))
    deviation = np.abs(ratio - np.median(ratio))
    return np.flatnonzero(deviation > max(6 * 1.4826 * np.median(deviation), np.log(3)))


def find_shifts(
    lengths: tuple[np.ndarray, np.ndarray], numbers: tuple[np.ndarray, np.ndarray]
) -> list[Shift]:
    """Find stretches where the sides fit better when moved by up to three lines.

    Lengths of translations go together (Gale and Church 1993, "A program for aligning sentences in
    bilingual corpora"), and numbers are carried over. The gain of a lag over none is a
    log-likelihood ratio for each line; a stretch is a run of lines with the largest sum of it.

    Args:
        lengths: characters of each text of both sides.
        numbers: a digest of the numbers in each text, 0 without any.
    """
    found: list[Shift] = []
    for offset in range(0, len(lengths[0]), _BLOCK):
        block = slice(offset, offset + _BLOCK)
        for shift in _shifts_in(
            [side[block] for side in lengths], [side[block] for side in numbers]
        ):
            start, end = shift.start + offset, shift.end + offset
            if found and found[-1].lag == shift.lag and start - found[-1].end < 10:
                found[-1] = Shift(found[-1].start, end, shift.lag)
            else:
                found.append(Shift(start, end, shift.lag))
    return found


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
    found: list[Shift] = []
    while len(found) < 20:
        gain, start, end, lag = max((*_largest_sum(gain), lag) for lag, gain in gains.items())
        if gain < max(25.0, 0.7 * (end - start)) or end - start < 8:
            break
        found.append(Shift(start, end, lag))
        for values in gains.values():
            values[start:end] = -9.0
    return sorted(found)


def _moved(values: np.ndarray, lag: int, missing: float) -> np.ndarray:
    """Return values[i + lag] at i, `missing` beyond the ends."""
    moved = np.full(len(values), missing, dtype=np.result_type(values, type(missing)))
    if abs(lag) < len(values):
        moved[max(0, -lag) : len(values) - max(0, lag)] = values[
            max(0, lag) : len(values) - max(0, -lag)
        ]
    return moved


def _largest_sum(values: np.ndarray) -> tuple[float, int, int]:
    """Return the largest sum of a run of values, where the run starts, and before what it ends."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    gains = sums[1:] - np.minimum.accumulate(sums[:-1])
    end = int(np.argmax(gains)) + 1
    start = end - 1 - int(np.argmin(sums[:end][::-1]))  # the shortest such run
    return float(gains[end - 1]), start, end
