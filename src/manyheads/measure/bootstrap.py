"""Intervals of scores, and significance of the difference between two systems.

Two tests, from the same sums (metrics.Statistics): the paired bootstrap varies the test set by
drawing it with replacement (Koehn 2004); approximate randomisation counts how often randomly
swapped outputs give a difference as large (Riezler and Maxwell 2005, who found it the more
conservative of the two).
"""

from typing import NamedTuple

import numpy as np

from manyheads.measure.text_metrics import Statistics

SAMPLES = 1000
SEED = 12345  # sacrebleu's, so that its tests draw the same samples
ROUNDING = 1e-9  # below it, two differences are equal


class Interval(NamedTuple):
    """A value on the whole corpus, and its 95% bootstrap interval."""

    value: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Two systems compared by one metric."""

    a: Interval
    b: Interval
    difference: Interval  # b - a
    p_bootstrap: float
    p_randomisation: float


def bootstrap(each: Statistics, *, samples: int = SAMPLES, seed: int = SEED) -> Interval:
    """Score one system, with its interval over test sets drawn with replacement (Koehn 2004)."""
    count, random = len(each.rows), np.random.default_rng(seed)
    drawn = [
        each.value(np.bincount(random.choice(count, size=count), minlength=count) @ each.rows)
        for _ in range(samples)
    ]
    return _interval(each.value(each.rows.sum(axis=0)), np.array(drawn))


def compare(
    a: Statistics, b: Statistics, *, samples: int = SAMPLES, seed: int = SEED
) -> Comparison:
    """Compare two systems on the same sentences, by the same metric.

    The p-values are two-sided: the probability of a difference at least as large as the observed
    one if the systems are equal. sacrebleu's bootstrap centres the absolute differences instead,
    which makes its p-value about half as large.
    """
    assert a.rows.shape == b.rows.shape
    scores = [each.value(each.rows.sum(axis=0)) for each in (a, b)]
    observed = scores[1] - scores[0]
    count = len(a.rows)

    random = np.random.default_rng(seed)
    drawn = np.empty((samples, 2))
    for sample in drawn:
        times = np.bincount(random.choice(count, size=count), minlength=count)
        sample[:] = a.value(times @ a.rows), b.value(times @ b.rows)
    differences = drawn[:, 1] - drawn[:, 0]
    shifted = np.abs(differences - differences.mean())

    random = np.random.default_rng(seed)
    swapped = np.empty(samples)
    total = a.rows.sum(axis=0) + b.rows.sum(axis=0)
    for index in range(samples):
        choice = random.integers(2, size=count)
        first = choice @ a.rows + (1 - choice) @ b.rows
        swapped[index] = abs(b.value(total - first) - a.value(first))

    return Comparison(
        _interval(scores[0], drawn[:, 0]),
        _interval(scores[1], drawn[:, 1]),
        _interval(observed, differences),
        _p_value(shifted, observed),
        _p_value(swapped, observed),
    )


def _interval(value: float, samples: np.ndarray) -> Interval:
    low, high = np.quantile(samples, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def _p_value(samples: np.ndarray, observed: float) -> float:
    """Return a p-value; the observed difference is counted too, so that it is never zero."""
    larger = int((samples >= abs(observed) - ROUNDING).sum())
    return (larger + 1) / (len(samples) + 1)
