"""Watches a run: names a bad beginning, says how long it takes, and redraws its page.

Nothing of this may stop a training: what fails is reported once, and the run goes on.
"""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from manyheads.doctor import beginning, curves
from manyheads.doctor.finding import Finding, by_cause, settings_text
from manyheads.fit.observer import RunObserver
from manyheads.fit.pace import Pace, duration, rehearsed
from manyheads.fit.run_page import PAGE, write_page
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe
from manyheads.train.history import read_history
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Task


class TrainingWatch:
    """An observer in front of another one, which hears all that happens, and what is added."""

    def __init__(
        self, observer: RunObserver, recipe: Recipe, task: Task[Any], out: Path, *, step: int
    ) -> None:
        """Watch the run in the folder `out`, which has made so many steps already."""
        self.observer = observer
        self.recipe = recipe
        self.task = task
        self.out = out
        self.findings: list[Finding] = []
        self.pace: Pace | None = None
        self.judged = -(-recipe.train.steps // beginning.PART)  # the step at which losses are
        self._losses: list[float] = []
        self._step = self._first = step
        self._failed: set[str] = set()

    @property
    def started(self) -> bool:
        """Whether the model began with the weights of another one."""
        return getattr(self.recipe, "start", None) is not None

    def say(self, message: str) -> None:
        """Pass a message on."""
        self.observer.say(message)

    def examine(self, model: nn.Module) -> None:
        """Look at the data and at the initial weights."""
        if self._step > 0:
            return
        with self._optional("the data were not examined"):
            sides = pipeline_of(self.recipe).part("samples", "sides")
            self._report(beginning.in_data(sides(self.task)) if sides else ())
            if not self.started:
                self._report(beginning.in_rate(model, self.recipe))

    def estimate(self, model: nn.Module, config: TrainConfig) -> None:
        """Measure how long the run will take, and say it."""
        with self._optional("the time was not estimated"):
            self.pace = pace = rehearsed(model, self.task, config, self.recipe.seed)
            before = config.validate_first and self._step == 0
            self.say(
                f"about {duration(pace.left(self._step) + before * pace.validation)} to go: "
                f"{config.steps - self._step:,} steps of {pace.step:.3g} s, "
                f"a validation of {pace.validation:.3g} s every {config.validate_every:,} steps, "
                f"which redraws {self.out / PAGE}"
            )

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        """Judge the losses of the first tenth; pass the step on, with the time left."""
        self._step = step
        if self.pace is not None:
            self.pace.stepped()
            line = {**line, "seconds_left": self.pace.left(step)}
        if step <= self.judged and self._first == 0:
            self._losses.append(line["step_loss"])
            if step == self.judged:
                with self._optional("the losses were not judged"):
                    losses, started = self._losses, self.started
                    self._report(beginning.in_losses(losses, self.recipe, started=started))
        self.observer.progress(step, steps, line)

    def validated(self, step: int, metrics: dict[str, float]) -> None:
        """Pass a validation on, say how long the run still takes, and draw the page."""
        if self.pace is not None:
            self.pace.validated()
        self.observer.validated(step, metrics)
        if self.pace is not None and step < self.recipe.train.steps:
            self.say(f"about {duration(self.pace.left(step))} to go")
        self.draw()

    def draw(self, *, ended: bool = False) -> None:
        """Draw the page of the run."""
        with self._optional(f"{PAGE} was not drawn"):
            history, recipe = read_history(self.out / "metrics.jsonl"), self.recipe
            finished = ended and history.last_step >= recipe.train.steps
            judged = curves.judged(history, recipe, started=self.started, finished=finished)
            write_page(
                self.out,
                history,
                by_cause([*self.findings, *judged]),
                getattr(self.task, "examples", ()),
                steps=recipe.train.steps,
                left=None if ended else 0.0 if self.pace is None else self.pace.left(self._step),
            )

    def _report(self, findings: Iterable[Finding]) -> None:
        for each in findings:
            self.findings.append(each)
            tried = [f"Try: {settings_text(each.settings)}"] if each.settings else []
            lines = [f"{each.severity}: {each.what} [{each.kind}]", *each.evidence, each.remedy]
            self.say("\n  ".join([*lines, *tried]))

    @contextmanager
    def _optional(self, what: str) -> Iterator[None]:
        """Do what the run does not depend on; report its first failure."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except Exception as error:  # whatever it is: the training goes on
            if what not in self._failed:
                self._failed.add(what)
                self.say(f"{what}: {type(error).__name__}: {error}")
