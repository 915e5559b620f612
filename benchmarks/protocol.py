"""How everything here is measured.

- The machine must be idle: what other processes take is measured before and during a benchmark,
  and a busy machine gives no result (`--force` gives one that is marked).
- The contenders of a case do the same work and take turns, in another order every round, so that
  what disturbs one disturbs all. Ratios are taken within a round.
- A figure is a median with its quartiles, after a warm-up.
- Beside a figure stands the share of the machine's peak in matrix products: useful operations by
  the formula (benchmarks/flops.py), divided by time and peak. The peak is the most that anything
  reached in this run: torch's product, the same with packed weights, or a contender.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from benchmarks.peers import PEERS
from manyheads.errors import ManyheadsError
from manyheads.nn.layers.linear import Linear, pack
from manyheads.train.device import processor

PEAK_SHAPE = (4096, 768, 3072)  # rows of activations, width, hidden width of ViT-B
PEAK_RUNS = 20
BUSY = 0.05  # share of the machine that others may take
PROBE_SECONDS = 1.0


class ChangedModelError(ManyheadsError):
    """A contender has changed what the others are measured on."""


class BusyMachineError(ManyheadsError):
    """Other processes are taking the machine, so that no time means anything."""


@dataclass(frozen=True)
class Settings:
    """How thoroughly to measure."""

    rounds: int = 11
    warmup: int = 2
    threads: int = 0  # 0 = as many as torch takes by itself
    force: bool = False  # measure on a busy machine too


QUICK = Settings(rounds=1, warmup=1)


@dataclass(frozen=True)
class Contender:
    """One way to do the work of a case."""

    name: str  # "manyheads", "timm"
    variant: str  # of a contender: "fp32", "bf16 autocast"
    work: Callable[[], object]


@dataclass(frozen=True)
class Case:
    """Work that contenders do in turns; the first of them is ours."""

    title: str
    unit: str  # "img/s", or "s" where the time itself is the figure
    contenders: Sequence[Contender]
    amount: float = 1  # units in one run
    flops: float = 0  # useful operations in one run; 0 where they say nothing
    bar: str = ""  # what is asked for
    # A hash of what the contenders share, checked after each of them.
    fingerprint: Callable[[], str] | None = None


@dataclass(frozen=True)
class Row:
    """What was measured of one contender: figures in the unit of the case."""

    name: str
    variant: str
    median: float
    low: float  # quartiles
    high: float
    seconds: list[float]  # of every round
    share: float | None = None  # of the peak in matrix products


@dataclass(frozen=True)
class CaseResult:
    """One case as measured; in `rows`, contenders in order and their variants together."""

    title: str
    unit: str
    bar: str
    rows: list[Row]
    # Name -> rate of the first contender divided by this one's, each in its best variant, over the
    # rounds: low quartile, median, high quartile.
    ratios: dict[str, list[float]]
    flops: float = 0  # useful operations in one run


@dataclass(frozen=True)
class Result:
    """One benchmark as measured: the content of its JSON file."""

    name: str
    title: str
    busy: bool
    others: float  # largest share of the machine that other processes took
    rounds: int
    machine: dict[str, str | int]
    peak: dict[str, float]  # the most GFLOP/s in matrix products that anything reached
    cases: list[CaseResult]


def run(
    name: str, title: str, cases: Iterable[Case], settings: Settings, say: Callable[[str], None]
) -> Result:
    """Measure the cases of one benchmark.

    Raises:
        BusyMachineError: other processes take the machine, and it was not forced.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    others = [others_while_idle()]
    if others[0] > BUSY and not settings.force:
        raise BusyMachineError(
            f"Other processes take {others[0]:.0%} of this machine (allowed: {BUSY:.0%}). "
            "Measure when it is idle, or add --force for figures that are marked as disturbed."
        )
    peak = {"fp32": gemm_peak(torch.float32), "bf16": gemm_peak(torch.bfloat16)}
    results = []
    for case in cases:  # one at a time, as they build their models when they are asked for
        say(f"{name}: {case.title} ...")
        before = _Jiffies.now()
        results.append(_measure(case, settings))
        for row in results[-1].rows:
            say(f"    {row.name}, {row.variant}: {row.median:,.4g} {case.unit}")
        others.append(_Jiffies.now().others_since(before))
    for case_result in results:
        for row in case_result.rows:
            if (kind := _kind(row.variant)) is not None:
                peak[kind] = max(peak[kind], _rate(case_result, row))
    return Result(
        name=name,
        title=title,
        busy=max(others) > BUSY,
        others=round(max(others), 3),
        rounds=settings.rounds,
        machine=machine(),
        peak={key: round(value, 1) for key, value in peak.items()},
        cases=[
            replace(each, rows=[replace(row, share=_share(each, row, peak)) for row in each.rows])
            for each in results
        ],
    )


def gemm_peak(dtype: torch.dtype) -> float:
    """Measure the most GFLOP/s that torch reaches in one matrix product, plain or packed."""
    rows, width, hidden = PEAK_SHAPE
    a, b = torch.randn(rows, width, dtype=dtype), torch.randn(width, hidden, dtype=dtype)
    packed = pack(Linear(width, hidden, bias=False).to(dtype).eval())
    products: list[Callable[[], object]] = [lambda: a @ b, lambda: packed(a)]
    with torch.inference_mode():
        fastest = min(_seconds(product) for product in products for _ in range(PEAK_RUNS))
    return 2 * rows * width * hidden / fastest / 1e9


def machine() -> dict[str, str | int]:
    """Describe where and with what something was measured."""
    description: dict[str, str | int] = {
        "cpu": processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    for package in ("manyheads", "torch", *PEERS):
        try:
            description[package] = version(package)
        except PackageNotFoundError:
            continue
    return description


def _measure(case: Case, settings: Settings) -> CaseResult:
    contenders = case.contenders
    shared = None if case.fingerprint is None else case.fingerprint()
    for contender in contenders:
        for _ in range(settings.warmup):
            contender.work()
        _check_unchanged(case, contender, shared)
    times: list[list[float]] = [[] for _ in contenders]
    for turn in range(settings.rounds):
        for place in range(len(contenders)):
            index = (place + turn) % len(contenders)
            times[index].append(_seconds(contenders[index].work))
            _check_unchanged(case, contenders[index], shared)
    rows = [
        _row(case, contender, seconds) for contender, seconds in zip(contenders, times, strict=True)
    ]
    return CaseResult(case.title, case.unit, case.bar, rows, _ratios(rows), case.flops)


def _check_unchanged(case: Case, contender: Contender, before: str | None) -> None:
    """Refuse figures of a damaged model."""
    if case.fingerprint is not None and case.fingerprint() != before:
        raise ChangedModelError(
            f"{case.title}: the model has changed when {contender.name}, {contender.variant}, had "
            "run. Give each contender a copy."
        )


def _kind(variant: str) -> str | None:
    """Name the peak that a variant is held against; there is none of 8-bit products."""
    if variant in ("fp32", "float32"):
        return "fp32"
    return "bf16" if variant.startswith("bf") else None


def _rate(case: CaseResult, row: Row) -> float:
    return case.flops / statistics.median(row.seconds) / 1e9


def _share(case: CaseResult, row: Row, peak: dict[str, float]) -> float | None:
    kind = _kind(row.variant)
    return _rate(case, row) / peak[kind] if kind and case.flops else None


def _row(case: Case, contender: Contender, seconds: list[float]) -> Row:
    low, median, high = _quartiles(
        seconds if case.unit == "s" else [case.amount / duration for duration in seconds]
    )
    rounded = [round(duration, 5) for duration in seconds]
    return Row(contender.name, contender.variant, median, low, high, rounded)


def _ratios(rows: list[Row]) -> dict[str, list[float]]:
    best: dict[str, Row] = {}
    for row in rows:
        if row.name not in best or _median(row) < _median(best[row.name]):
            best[row.name] = row
    first, *rest = best.values()
    return {
        row.name: _quartiles(
            [theirs / ours for theirs, ours in zip(row.seconds, first.seconds, strict=True)]
        )
        for row in rest
    }


def _median(row: Row) -> float:
    return statistics.median(row.seconds)


def _quartiles(values: list[float]) -> list[float]:
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@dataclass(frozen=True)
class _Jiffies:
    """Processor time so far in seconds: of the whole machine, and of us and our children."""

    wall: float
    machine: float | None  # None where the system does not tell
    own: float

    @classmethod
    def now(cls) -> "_Jiffies":
        own = sum(os.times()[:4])
        try:
            # Columns: user nice system idle iowait irq softirq steal
            line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
        except OSError:
            return cls(time.monotonic(), None, own)
        ticks = [int(tick) for tick in line.split()[1:9]]
        busy = sum(ticks) - ticks[3] - ticks[4]
        return cls(time.monotonic(), busy / os.sysconf("SC_CLK_TCK"), own)

    def others_since(self, before: "_Jiffies") -> float:
        """Tell which share of the machine other processes have taken."""
        cores = os.cpu_count() or 1
        if self.machine is None or before.machine is None:  # macOS: load is all there is
            return max(os.getloadavg()[0] - torch.get_num_threads(), 0.0) / cores
        others = (self.machine - before.machine) - (self.own - before.own)
        return max(others, 0.0) / (self.wall - before.wall) / cores


def others_while_idle() -> float:
    before = _Jiffies.now()
    time.sleep(PROBE_SECONDS)
    return _Jiffies.now().others_since(before)
