"""The findings of an experiment (tables, panels, conclusion) and its result file format."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, Literal

import numpy as np

from manyheads.lens.panels import Interval, Panel, Table, number

SCHEMA = "manyheads-lab/1"
Scale = Literal["full", "quick", "smoke"]  # minutes; under a minute; seconds, for the tests

# Two-sided 95% quantiles of Student's t by degrees of freedom; beyond, an expansion around the
# normal quantile is used (Abramowitz & Stegun 1964, 26.7.5).
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)

HOLDS, PART, FAILS = "holds", "holds in part", "does not hold at this size"
SAMPLES, SEED = 1000, 12345  # of the bootstrap
Ratio = tuple[Sequence[float], Sequence[float] | None]  # for each input; None: ones


def interval(measured: Sequence[float]) -> Interval:
    """Mean and 95% interval by Student's t, as the variance of few seeds is an estimate, too."""
    middle = statistics.fmean(measured)
    if len(measured) < 2:
        return Interval(middle)
    freedom = len(measured) - 1
    quantile = _T[freedom - 1] if freedom <= len(_T) else 1.96 + 2.37 / freedom + 2.82 / freedom**2
    half = quantile * statistics.stdev(measured) / math.sqrt(len(measured))
    return Interval(middle, middle - half, middle + half)


def verdict(a: Sequence[Any], b: Sequence[Any], *path: Any) -> int:
    """Return whether a is significantly more than b (1), less (-1), or neither (0).

    Both are numbers, or trials that measured numbers under nested keys. Seeds are compared in
    pairs. With one seed there is no interval, and only the sign is used.
    """
    pairs = zip(values(a, *path), values(b, *path), strict=True)
    return surely(interval([x - y for x, y in pairs]))


def more(a: Sequence[Any], b: Sequence[Any], *path: Any) -> str:
    """Return the verdict as "more", "less" or "not surely more"."""
    return {1: "more", -1: "less", 0: "not surely more"}[verdict(a, b, *path)]


def leader(scores: Mapping[str, Sequence[Any]], *path: Any) -> str:
    """Return the name of the largest mean, and the second if it is not significantly less."""
    first, second = sorted(scores, key=lambda name: -over(scores[name], *path).mean)[:2]
    sure = verdict(scores[first], scores[second], *path) > 0
    return first if sure else f"{first} (not surely more than {second})"


def resampled(one: Ratio, other: Ratio | None = None) -> Interval:
    """Divide sums over inputs; the interval draws inputs with replacement (Koehn 2004).

    With `other`, that ratio is subtracted, of the same inputs in every draw.

    Examples:
        >>> resampled(([1.0, 3.0], None)).mean, resampled(([1.0, 3.0], [2.0, 2.0])).mean
        (2.0, 1.0)
    """
    draws = np.random.default_rng(SEED).multinomial(
        len(one[0]), np.full(len(one[0]), 1 / len(one[0])), size=SAMPLES
    )
    draws = np.vstack([np.ones(len(one[0]), dtype=int), draws])  # the first is the whole sample

    def ratios(values: Sequence[float], counts: Sequence[float] | None) -> np.ndarray:
        below = np.ones(len(values)) if counts is None else np.array(counts, dtype=float)
        return (draws @ np.array(values, dtype=float)) / (draws @ below).clip(1e-9)

    found = ratios(*one) - (ratios(*other) if other is not None else 0.0)
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return Interval(float(found[0]), float(low), float(high))


def surely(difference: Interval) -> int:
    """Return the sign of an interval that does not contain zero, else 0; of one seed the sign."""
    low = difference.mean if difference.low is None else difference.low
    high = difference.mean if difference.high is None else difference.high
    return 1 if low > 0 else -1 if high < 0 else 0


def judged(*parts: bool) -> str:
    """Return the verdict on a claim with several parts: all, some or none of them are so."""
    return HOLDS if all(parts) else PART if any(parts) else FAILS


def counted(verdicts: Sequence[str]) -> str:
    """Count verdicts in words, such as "holds in 1, does not hold at this size in 2"."""
    given = [name for name in (HOLDS, PART, FAILS) if name in verdicts]
    return ", ".join(f"{name} in {verdicts.count(name)}" for name in given)


@dataclass(frozen=True)
class Findings:
    """The findings of a run of an experiment."""

    conclusion: str  # one sentence, computed from the numbers
    tables: list[Table]
    panels: list[Panel]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One measurement: its name, times and values."""

    name: str
    seconds: float
    cpu: float  # seconds of processors; more than `seconds` with threads, less on a busy machine
    measured: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The saved result of a run: all data of its page and figure."""

    schema: str
    lab: str
    atlas: list[str]
    question: str
    method: str
    limits: str  # what this scale cannot show
    scale: Scale
    size: dict[str, Any]
    seeds: list[int]
    conclusion: str
    tables: list[Table]
    panels: list[Panel]
    trials: list[Trial]
    machine: dict[str, Any]
    versions: dict[str, str]
    minutes: float  # of all trials together, those of interrupted runs too
    cpu_minutes: float
    date: str
    command: str


Trials = Sequence[Mapping[str, Any]]  # of one model, one a seed
ByModel = Mapping[str, Trials]
BySize = Mapping[str, Mapping[int, Trials]]  # of each model, by what was varied


def values(trials: Trials, *path: Any) -> list[float]:
    """Return what each trial measured under nested keys: `trial["covered"]["0.5"]`."""
    numbers: list[float] = [reduce(getitem, path, trial) for trial in trials]  # type: ignore[misc]
    return numbers


def over(trials: Trials, *path: Any) -> Interval:
    """Return the interval over seeds of what trials measured under nested keys."""
    return interval(values(trials, *path))


def mean(trials: Trials, *path: Any) -> str:
    """Write the mean over seeds of what trials measured under nested keys."""
    return number(over(trials, *path).mean)


def by_size(models: ByModel, sizes: Sequence[int]) -> BySize:
    """Regroup trials of several sizes each (`trial["8"]`); their parameters stay with each."""
    return {
        name: {
            size: [each[str(size)] | {"parameters": each["parameters"]} for each in trials]
            for size in sizes
        }
        for name, trials in models.items()
    }
