"""The settings of an experiment, and its trials, which are saved as they are measured.

An interrupted run continues with the first missing trial.
"""

import json
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from manyheads.files import append_line, write_text
from manyheads.labs.findings import Scale, Trial
from manyheads.project.paths import allow
from manyheads.strict_json import dumps

Measured = dict[str, Any]  # JSON values: numbers, texts, and lists of them
Say = Callable[[str], object]
Outcome = tuple[str, dict[str, Any]]  # a conclusion, and the data of tables and panels
Size = Any  # the sizes of a run: a named tuple with the entries of experiments.toml
K = TypeVar("K", bound=Hashable)

TRIALS = ".trials.jsonl"


@dataclass(kw_only=True, eq=False)
class Bench:
    """The settings of a run whose random trials are repeated with each seed, and its trials."""

    scale: Scale = "full"
    seeds: tuple[int, ...] = (1,)
    root: str | None = None  # of data sets; None: MANYHEADS_DATA, else data/
    notebook: Path | None = None  # where trials are saved
    say: Say = str  # called with a message after each trial; str: no output
    size: dict[str, Any] = field(default_factory=dict, init=False)
    trials: list[Trial] = field(default_factory=list, init=False)
    _known: dict[str, Trial] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        allow(self.root)

    def choose(self, sizes: Mapping[Scale, Size]) -> Size:
        """Return the sizes of this scale; saved trials of other sizes are dropped."""
        size = sizes[self.scale]
        self.size = json.loads(dumps(size._asdict()))  # as it is kept
        if self.notebook is not None:
            head = dumps({"size": self.size, "torch": torch.__version__})
            self._known = _read(self.notebook, head)
        return size

    def trial(self, name: str, measure: Callable[[], Measured]) -> Measured:
        """Return the saved measurement of a trial, or measure and save it."""
        trial = self._known.get(name)
        if trial is None:
            began, busy = time.monotonic(), time.process_time()
            measured = measure()
            trial = Trial(
                name=name,
                seconds=round(time.monotonic() - began, 2),
                cpu=round(time.process_time() - busy, 2),
                measured=measured,
            )
            self.say(f"{name}: {trial.seconds:.1f} s")
            if self.notebook is not None:
                append_line(self.notebook, dumps(asdict(trial)))
        self.trials.append(trial)
        return trial.measured

    def each_seed(self, name: str, measure: Callable[[int], Measured]) -> list[Measured]:
        """Measure with each seed."""
        return [self.trial(f"{name}, seed {seed}", partial(measure, seed)) for seed in self.seeds]

    def measured(
        self, name: str, arms: Iterable[K], measure: Callable[..., Measured], *sizes: Any
    ) -> dict[K, Measured]:
        """Call `measure(arm, *sizes)` for each arm; `name` is the trial's, with braces for it."""
        return {arm: self.trial(name.format(arm), partial(measure, arm, *sizes)) for arm in arms}

    def seeded(
        self, name: str, arms: Iterable[K], measure: Callable[..., Measured], *sizes: Any
    ) -> dict[K, list[Measured]]:
        """Call `measure(arm, *sizes, seed)` for each arm and seed."""
        return {a: self.each_seed(name.format(a), partial(measure, a, *sizes)) for a in arms}

    def tuned(
        self,
        arms: Mapping[K, str],
        rates: Sequence[float],
        measure: Callable[[K, float, int], Measured],
        score: Callable[[Measured], float],
    ) -> dict[K, list[Measured]]:
        """Choose a learning rate by the largest score of the first arm with the first seed.

        Returns what `measure(arm, rate, seed)` gives with it for each arm and seed. `arms` maps
        each arm to the name of its trials.
        """

        @cache
        def once(arm: K, rate: float, seed: int) -> Measured:
            name = f"{arms[arm]}, rate {rate:g}, seed {seed}"
            return self.trial(name, partial(measure, arm, rate, seed))

        first, seed = next(iter(arms)), self.seeds[0]
        scores = {rate: score(once(first, rate, seed)) for rate in rates}
        best = max(scores, key=lambda rate: scores[rate])
        return {arm: [once(arm, best, seed) for seed in self.seeds] for arm in arms}


def _read(notebook: Path, head: str) -> dict[str, Trial]:
    """Read the trials of a notebook that begins with `head`; otherwise start a new one."""
    text = notebook.read_text(encoding="utf-8") if notebook.exists() else ""
    first, *lines = text.split("\n")[:-1] or [""]  # the last line may be incomplete
    kept = lines if first == head else []
    write_text(notebook, "\n".join([head, *kept, ""]))
    return {trial["name"]: Trial(**trial) for trial in map(json.loads, kept)}
