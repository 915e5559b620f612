"""From scores of columns to a sequence of ids: CTC (Graves et al. 2006, section 3).

Every column names an id or "blank". Repeated ids are merged, then blanks are dropped: a path of
columns stands for a sequence, and the probability of a sequence is the sum over all its paths.
"""

import math
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from torch import Tensor

RARE = math.log(1e-4)  # a beam search tries no less probable ids in a column
NEVER = -math.inf


class CtcResult(NamedTuple):
    """A sequence of ids."""

    ids: tuple[int, ...]
    probabilities: tuple[float, ...]  # of each id: the largest of its columns
    score: float  # log-probability: of the best path if greedy, of the sequence in a beam search


def best_path(log_probabilities: Float[Tensor, "column vocabulary"], blank: int) -> CtcResult:
    """Take the most probable id of each column (Graves et al. 2006, equation 4)."""
    values, best = (each.tolist() for each in log_probabilities.max(dim=-1))
    ids: list[int] = []
    logs: list[float] = []
    for id, columns in groupby(zip(best, values, strict=True), itemgetter(0)):
        if id != blank:
            ids.append(id)
            logs.append(max(value for _, value in columns))
    return CtcResult(tuple(ids), tuple(map(math.exp, logs)), sum(values))


class _Prefix(NamedTuple):
    """A beginning of a sequence, over all paths so far."""

    to_blank: float = NEVER  # log-probability of the paths that end in blank
    to_id: float = NEVER  # of those that end in its last id
    columns: tuple[float, ...] = ()  # of each id: the largest log-probability of its columns

    @property
    def score(self) -> float:
        return _add(self.to_blank, self.to_id)


def prefix_search(
    log_probabilities: Float[Tensor, "column vocabulary"], blank: int, *, beams: int
) -> list[CtcResult]:
    """Find the most probable sequences, best first, by a search over prefixes with beams.

    The paths of a prefix are added up (Hannun et al. 2014, "First-Pass Large Vocabulary Continuous
    Speech Recognition using Bi-Directional Recurrent DNNs", algorithm 1, without a language model).
    """
    kept: dict[tuple[int, ...], _Prefix] = {(): _Prefix(to_blank=0.0)}
    for column in log_probabilities.double().numpy():
        likely = np.flatnonzero(column > RARE)
        likely = likely[np.argsort(-column[likely])][: beams + 1]
        likely = likely[likely != blank].tolist()
        grown: dict[tuple[int, ...], _Prefix] = {}
        for ids, prefix in kept.items():
            score = prefix.score
            _put(grown, ids, prefix.columns, to_blank=score + float(column[blank]))
            for id in likely:
                value = float(column[id])
                before = score
                if ids and id == ids[-1]:
                    columns = (*prefix.columns[:-1], max(prefix.columns[-1], value))
                    _put(grown, ids, columns, to_id=prefix.to_id + value)
                    before = prefix.to_blank  # twice the same id takes a blank between
                _put(grown, (*ids, id), (*prefix.columns, value), to_id=before + value)
        possible = [entry for entry in grown.items() if entry[1].score > NEVER]
        kept = dict(sorted(possible, key=lambda entry: -entry[1].score)[:beams])
    return [
        CtcResult(ids, tuple(map(math.exp, prefix.columns)), prefix.score)
        for ids, prefix in kept.items()
    ]


def _put(
    grown: dict[tuple[int, ...], _Prefix],
    ids: tuple[int, ...],
    columns: tuple[float, ...],
    to_blank: float = NEVER,
    to_id: float = NEVER,
) -> None:
    """Add paths to a prefix."""
    before = grown.get(ids, _Prefix())
    largest = tuple(map(max, before.columns, columns)) if before.columns else columns
    grown[ids] = _Prefix(_add(before.to_blank, to_blank), _add(before.to_id, to_id), largest)


def _add(first: float, second: float) -> float:
    """Return log(exp(first) + exp(second))."""
    high, low = max(first, second), min(first, second)
    return high if low == NEVER else high + math.log1p(math.exp(low - high))
