"""Where an experiment is done: its settings, and trials that are remembered.

A trial is written down as soon as it is measured. So a run that is interrupted goes on with the
first trial that is missing, and the result has every measurement in it.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch

from manyheads.lab.findings import Findings, Trial

Scale = Literal["full", "quick", "smoke"]  # minutes; under a minute; seconds, for the tests
Measured = dict[str, Any]  # plain numbers, texts, and lists of them: what JSON can hold
Say = Callable[[str], object]
S = TypeVar("S")

TRIALS = ".trials.jsonl"


@dataclass(frozen=True, kw_only=True)
class Lab:
    """An experiment."""

    method: str
    limits: str
    run: Callable[["Bench"], Findings]
    seeds: int = 3  # of a full run; a quick one takes 2, a smoke run 1; nothing random: 1


class Bench:
    """Settings of a run, and the notebook of its trials."""

    def __init__(
        self,
        *,
        scale: Scale = "full",
        seeds: tuple[int, ...] = (1,),
        root: str | None = None,
        notebook: Path | None = None,
        say: Say = str,  # to nobody
    ) -> None:
        """Prepare a run.

        Args:
            scale: how much is measured.
            seeds: each trial that depends on chance is done with each.
            root: the folder of data sets; else MANYHEADS_DATA, else data/.
            notebook: the file that trials are remembered in; none if None.
            say: told of each trial.
        """
        self.scale = scale
        self.seeds = seeds
        self.root = root
        self.notebook = notebook
        self.say = say
        self.size: dict[str, Any] = {}
        self.trials: list[Trial] = []
        self._known: dict[str, Trial] = {}

    def choose(self, sizes: Mapping[Scale, S]) -> S:
        """Take the sizes of this scale; trials of other sizes are forgotten."""
        size = sizes[self.scale]
        self.size = json.loads(json.dumps(asdict(size)))  # type: ignore[call-overload] # as it is kept
        if self.notebook is not None:
            head = json.dumps({"size": self.size, "torch": torch.__version__})
            self._known = _read(self.notebook, head)
        return size

    def trial(self, name: str, measure: Callable[[], Measured]) -> Measured:
        """Measure, or remember what was measured."""
        found = self._known.get(name)
        if found is None:
            began, busy = time.monotonic(), time.process_time()
            measured = measure()
            found = Trial(
                name=name,
                seconds=round(time.monotonic() - began, 2),
                cpu=round(time.process_time() - busy, 2),
                measured=measured,
            )
            self.say(f"{name}: {found.seconds:.1f} s")
            if self.notebook is not None:
                with self.notebook.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(found)) + "\n")
        self.trials.append(found)
        return found.measured

    def each_seed(self, name: str, measure: Callable[[int], Measured]) -> list[Measured]:
        """Measure with each seed."""
        return [self.trial(f"{name}, seed {seed}", partial(measure, seed)) for seed in self.seeds]


def _read(notebook: Path, head: str) -> dict[str, Trial]:
    """Read the trials of a notebook that begins with `head`; begin a new one if it does not."""
    lines = (
        notebook.read_text(encoding="utf-8").splitlines(keepends=True) if notebook.exists() else []
    )
    whole = [line for line in lines if line.endswith("\n")]  # the last may have been cut off
    if not whole or whole[0].strip() != head:
        whole = [head + "\n"]
    notebook.parent.mkdir(parents=True, exist_ok=True)
    notebook.write_text("".join(whole), encoding="utf-8")
    return {trial["name"]: Trial(**trial) for trial in map(json.loads, whole[1:])}
