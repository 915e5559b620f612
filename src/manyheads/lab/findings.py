"""What an experiment finds: tables, panels of a figure, a sentence; and the file it is kept in."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from manyheads.lens.panels import Curve, Interval, Panel, Table

SCHEMA = "manyheads-lab/1"

# Two-sided 95% quantiles of Student's t by degrees of freedom; beyond, the expansion around the
# normal one serves (Abramowitz & Stegun 1964, 26.7.5).
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def interval(values: Sequence[float]) -> Interval:
    """Mean and 95% interval by Student's t: seeds are few, and their spread is an estimate too."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean)
    freedom = len(values) - 1
    quantile = _T[freedom - 1] if freedom <= len(_T) else 1.96 + 2.37 / freedom + 2.82 / freedom**2
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def verdict(a: Sequence[float], b: Sequence[float]) -> int:
    """Say whether a is surely more than b (1), less (-1), or neither (0).

    Seeds are compared in pairs. With one seed there is no interval, and the sign has to do; the
    page says so.
    """
    found = interval([x - y for x, y in zip(a, b, strict=True)])
    low = found.mean if found.low is None else found.low
    high = found.mean if found.high is None else found.high
    return 1 if low > 0 else -1 if high < 0 else 0


def more(a: Sequence[float], b: Sequence[float]) -> str:
    """Write the verdict, as "more", "less" or "not surely more"."""
    return {1: "more", -1: "less", 0: "not surely more"}[verdict(a, b)]


def leader(found: Mapping[str, Sequence[float]]) -> str:
    """Name the greatest mean, and the second where it is not surely less."""
    first, second = sorted(found, key=lambda name: -statistics.fmean(found[name]))[:2]
    sure = verdict(found[first], found[second]) > 0
    return first if sure else f"{first} (not surely more than {second})"


@dataclass(frozen=True)
class Findings:
    """What a run of an experiment gives."""

    conclusion: str  # one sentence, computed from the numbers
    tables: list[Table]
    panels: list[Panel]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One measurement: what it was, how long it took, what came out."""

    name: str
    seconds: float
    cpu: float  # seconds of processors; more than `seconds` with threads, less on a busy machine
    measured: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Result:
    """A run of an experiment as it is kept: everything that its page and figure are made from."""

    schema: str
    lab: str
    atlas: list[str]
    question: str
    method: str
    limits: str  # what this scale cannot show
    scale: Literal["full", "quick", "smoke"]
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


Trials = Mapping[str, Sequence[Mapping[str, Any]]]  # of each model, one a seed


def curves(found: Trials, sizes: Sequence[int], what: str) -> list[Curve]:
    """Draw a measure of every model against the sizes it was taken at: `trial["8"][what]`."""
    return [Curve.of(name, sizes, _at(sizes, trials, what)) for name, trials in found.items()]


def table(title: str, found: Trials, sizes: Sequence[int], what: str) -> Table:
    """Write the same as a table, with the models' parameters."""
    return Table(
        title,
        ["model", "parameters", *map(str, sizes)],
        [
            [name, trials[0]["parameters"], *_at(sizes, trials, what)]
            for name, trials in found.items()
        ],
    )


def _at(sizes: Sequence[int], trials: Sequence[Mapping[str, Any]], what: str) -> list[Interval]:
    return [interval([trial[str(size)][what] for trial in trials]) for size in sizes]
