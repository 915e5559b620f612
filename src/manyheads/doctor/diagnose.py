"""Examine everything that a run left behind: what is wrong, and what was looked at."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from manyheads.doctor import curves, heads, learned, output_habits, weights
from manyheads.doctor.finding import Finding, by_cause
from manyheads.doctor.run_batches import Behaviour, Examined, Samples
from manyheads.doctor.run_inspection import RunInspection
from manyheads.errors import ManyheadsError, UsageError
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.paths import allow
from manyheads.train.device import inference_threads, limited_threads
from manyheads.train.history import read_history


@dataclass
class Diagnosis:
    """What is wrong with a run, what was looked at, and what could not be."""

    path: Path
    task: str
    step: int
    steps: int | None  # None: trained elsewhere
    finished: bool
    findings: list[Finding] = field(default_factory=list)
    looked_at: list[str] = field(default_factory=list)
    not_looked_at: list[str] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """How many findings say that the model or its scores are of no use."""
        return sum(finding.severity == "error" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        plain = asdict(self)
        return {"run": str(plain.pop("path")), "errors": self.errors} | plain

    def look_at(self, what: str, examine: Callable[..., Examined], *values: object) -> None:
        """Add what one examination finds, or note that it could not look: others still can."""
        try:
            examined = examine(*values)
        except ManyheadsError as error:
            self.not_looked_at = list(dict.fromkeys([*self.not_looked_at, f"{what}: {error}"]))
            return
        self.findings += examined.findings
        self.looked_at += examined.looked_at
        self.not_looked_at += examined.not_looked_at

    def plot(self, path: Path) -> None:
        """Draw the training loss with the findings, and the validation loss if it was measured.

        Raises:
            UsageError: nothing was logged.
            MissingExtraError: matplotlib is not installed.
        """
        from manyheads.lens.plot.charts import Mark, draw_curve

        history = read_history(self.path / "metrics.jsonl")
        if not history.training:
            raise UsageError(f"{self.path} has no metrics: there is no training curve to draw.")
        draw_curve(
            history.steps.tolist(),
            history.losses.tolist(),
            [(int(v["step"]), v["val_loss"]) for v in history.validations if "val_loss" in v],
            [Mark(f.step, f.kind, f.severity) for f in self.findings if f.step is not None],
            path,
            title=self.path.resolve().name,
        )


def diagnose(
    name: str, *, remote: bool = False, device: str | None = None, threads: int | None = None
) -> Diagnosis:
    """Examine a run folder, finished or not, or a shipped model: metrics, weights, some data.

    `remote` reads data by addresses that its recipe names; `device` and `threads` are those of
    `load`.

    Raises:
        NotFoundError: there is no such folder.
        FolderError: it is damaged.
        UsageError: no such device.
    """
    run = RunInspection(name, device)
    if remote:
        allow(*dict(run.recipe.data).values())
    model = run.model()
    if threads is None and model is not None:
        threads = inference_threads(model)
    with limited_threads(threads):
        return examine(run, model)


def examine(run: RunInspection, model: nn.Module | None) -> Diagnosis:
    """Look at metrics, weights and a few batches of the data, as far as they are there."""
    recipe, step = run.recipe, run.history.last_step
    steps = None if recipe.origin else recipe.train.steps
    diagnosis = Diagnosis(run.path, recipe.task, step, steps, run.finished)
    _metrics(run, diagnosis)
    if model is None:
        diagnosis.not_looked_at.append("weights: none are stored yet (train.save_every)")
    broken = [] if model is None else list(weights.not_numbers(model))
    diagnosis.findings += broken
    samples = _samples(run, diagnosis)
    if samples is not None:
        diagnosis.findings += curves.too_good(run.history, samples.validation)
        diagnosis.look_at("leaks in the data", samples.leaks)
    if model is not None:
        moved = weights.measure(run, model)
        diagnosis.findings += weights.hardly_moved(run, moved)
        parameters = sum(each.numel() for each in model.parameters())
        known = "" if moved is None else ", against their initial values"
        diagnosis.looked_at.append(f"weights: {parameters:,} parameters{known}")
        if samples is not None and not broken:
            for what, rule in BEHAVIOUR:
                diagnosis.look_at(what, rule, Behaviour(model, samples, run, moved))
            diagnosis.findings += learned.collapsed_by_rate(diagnosis.findings, recipe, moved, step)
    diagnosis.findings = by_cause(diagnosis.findings)
    return diagnosis


def _metrics(run: RunInspection, diagnosis: Diagnosis) -> None:
    history, recipe = run.history, run.recipe
    if not history.training:
        diagnosis.not_looked_at.append("metrics: there are none")
    else:
        diagnosis.looked_at.append(
            f"metrics: {len(history):,} lines about training, {len(history.validations):,} "
            "validations"
        )
        if len(history) < curves.LINES:
            diagnosis.not_looked_at.append(
                f"the shape of the loss curve: {len(history)} lines are too few (train.log_every)"
            )
    diagnosis.findings += curves.judged(history, recipe, started=run.started, finished=run.finished)


def _samples(run: RunInspection, diagnosis: Diagnosis) -> Samples | None:
    try:
        samples: Samples | None = pipeline_of(run.recipe).samples(run.recipe, run)
    except ManyheadsError as error:
        diagnosis.not_looked_at.append(f"the data and what the model makes of them: {error}")
        return None
    if samples is None:
        diagnosis.not_looked_at.append(
            f"the data: doctor takes no samples of the task {run.recipe.task!r}; `manyheads "
            "check-data` lists what is wrong with them, `manyheads evaluate` measures the answers"
        )
        return None
    diagnosis.looked_at.append(
        f"losses: {samples.sizes[0]:,} training and {samples.sizes[1]:,} of "
        f"{samples.validation:,} validation examples"
    )
    return samples


# Rules about the behaviour of a model on samples of the data; one that cannot look is noted.
BEHAVIOUR: list[tuple[str, Callable[[Behaviour], Examined]]] = [
    ("what the model has learned", learned.from_losses),
    ("what the model has learned", learned.from_answers),
    ("what the model has learned", learned.from_features),
    ("what the model writes", output_habits.written),
    ("heads", heads.at_work),
]
