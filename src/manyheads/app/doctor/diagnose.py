"""All of it: look at what is there of a run, say what is wrong, and what was looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from torch import nn

from manyheads.app.doctor import curves, heads, leaks, learning, outputs, picture_leaks, weights
from manyheads.app.doctor.causes import by_cause
from manyheads.app.doctor.finding import Finding
from manyheads.app.doctor.patient import Patient
from manyheads.app.doctor.samples import (
    LineSamples,
    PairSamples,
    PictureSamples,
    Samples,
    predictions,
    read_samples,
)
from manyheads.app.recipe import GenerateRecipe, TranslateRecipe
from manyheads.errors import ManyheadsError
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.tasks.classify import ClassifyTask
from manyheads.tasks.watch import PAIRS


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
        return {
            "run": str(self.path),
            "task": self.task,
            "step": self.step,
            "steps": self.steps,
            "finished": self.finished,
            "errors": self.errors,
            "findings": [asdict(finding) for finding in self.findings],
            "looked_at": self.looked_at,
            "not_looked_at": self.not_looked_at,
        }


def diagnose(name: str) -> Diagnosis:
    """Examine a run.

    Args:
        name: a run folder, finished or not, or the name of a shipped model.

    Raises:
        NotFoundError: there is no such folder.
        FolderError: it is damaged.
    """
    return examine(Patient(name))


def examine(patient: Patient) -> Diagnosis:
    """Look at the metrics, the weights, and a few batches of the data, as far as they are there."""
    recipe, history = patient.recipe, patient.history
    found = Diagnosis(
        patient.path,
        recipe.task,
        history.last_step,
        None if patient.converted else recipe.train.steps,
        patient.finished,
    )
    _metrics(patient, found)
    model = patient.model()
    if model is None:
        found.not_looked_at.append("weights: none are stored yet (train.save_every)")
    broken = [] if model is None else weights.not_numbers(model)
    found.findings += broken
    samples = _samples(patient, found)
    if samples is not None:
        found.findings += curves.too_good(history, samples.validation)
        _data(patient, samples, found)
    if model is not None:
        moved = weights.measure(patient, model)
        found.findings += weights.hardly_moved(patient, moved)
        parameters = sum(each.numel() for each in model.parameters())
        known = "" if moved is None else ", against their initial values"
        found.looked_at.append(f"weights: {parameters:,} parameters{known}")
        if samples is not None and not broken:
            _behaviour(patient, model, samples, moved, found)
            found.findings += learning.collapsed_by_rate(
                found.findings, recipe, moved, history.last_step
            )
            _heads(patient, model, samples, found)
    found.findings = by_cause(found.findings)
    return found


def _metrics(patient: Patient, found: Diagnosis) -> None:
    history, recipe = patient.history, patient.recipe
    if not history.training:
        found.not_looked_at.append("metrics: there are none")
    else:
        found.looked_at.append(
            f"metrics: {len(history):,} lines about training, {len(history.validations):,} "
            "validations"
        )
        if len(history) < curves.LINES:
            found.not_looked_at.append(
                f"the shape of the loss curve: {len(history)} lines are too few (train.log_every)"
            )
    found.findings += curves.non_finite(history, recipe)
    found.findings += curves.diverged(history, recipe)
    found.findings += curves.spikes(history, recipe)
    if not patient.started:
        found.findings += curves.too_slow(history, recipe)
        if patient.finished:
            found.findings += curves.too_short(history, recipe)
    found.findings += curves.overfitting(history, recipe)


def _samples(patient: Patient, found: Diagnosis) -> Samples | None:
    try:
        samples = read_samples(patient)
    except ManyheadsError as error:
        found.not_looked_at.append(f"the data and what the model makes of them: {error}")
        return None
    found.looked_at.append(
        f"losses: {samples.sizes[0]:,} training and {samples.sizes[1]:,} of "
        f"{samples.validation:,} validation examples"
    )
    return samples


def _data(patient: Patient, samples: Samples, found: Diagnosis) -> None:
    with _overlooking("leaks in the data", found):
        if isinstance(samples, PictureSamples):
            album = picture_leaks.Album(samples)
            found.findings += picture_leaks.pictures_seen_before(album)
            found.findings += picture_leaks.series(album, patient.recipe)
            found.findings += picture_leaks.mark(album, patient.recipe)
            found.findings += picture_leaks.file_properties(album)
            found.looked_at.append(
                f"leaks: {len(album.train):,} training and {len(album.valid):,} validation "
                "pictures: copies, series, marks, files"
            )
        else:
            found.findings += leaks.seen_before(samples)
            found.findings += leaks.given_away(samples)
            found.looked_at.append(
                f"leaks: all {samples.validation:,} validation texts, whether training has them"
            )


def _behaviour(
    patient: Patient,
    model: nn.Module,
    samples: Samples,
    moved: weights.Weights | None,
    found: Diagnosis,
) -> None:
    recipe, step = patient.recipe, patient.history.last_step
    with _overlooking("what the model has learned", found):
        learned = learning.measure(model, samples)
        if learned is not None:
            found.findings += learning.nothing_learned(learned, samples, recipe, moved, step)
            found.findings += learning.by_heart(learned, samples, recipe, step)
        answers = predictions(model, samples.valid)
        if answers is not None:
            found.findings += learning.one_answer(answers, samples, recipe, step)
            found.looked_at.append(f"answers: {len(answers[0]):,} to validation data")
        if isinstance(samples.valid, ClassifyTask):
            found.findings += learning.flat_features(model, samples, step)
    with _overlooking("what the model writes", found):
        if isinstance(recipe, TranslateRecipe):
            assert isinstance(samples, PairSamples)
            written = outputs.translations(model, samples, recipe)
            found.findings += outputs.one_sentence(written, recipe, step)
            found.findings += outputs.habits(written, recipe, step)
            found.findings += outputs.length(written, recipe, step, finished=patient.finished)
            count = len(written.outputs)
            if count < PAIRS:
                found.not_looked_at.append(
                    f"habits of the translations: {count} validation pairs are fewer than {PAIRS}"
                )
            else:
                found.looked_at.append(
                    f"translations: {count} of the validation data, beams = {recipe.decode.beams}: "
                    "copies, loops, empty or equal ones, script, length"
                )
        elif isinstance(recipe, GenerateRecipe):
            assert isinstance(samples, LineSamples)
            writer = cast(CausalLanguageModel, model)
            tokenizer = patient.tokenizers().target
            written = outputs.continuations(writer, tokenizer, samples.few[1].sentences)
            found.findings += outputs.one_sentence(written, recipe, step)
            found.findings += outputs.looping(written, recipe, step)
            found.looked_at.append(f"continuations: {len(written.outputs)} drawn")


def _heads(patient: Patient, model: nn.Module, samples: Samples, found: Diagnosis) -> None:
    with _overlooking("heads", found):
        watch = heads.watch(model, samples)
        seen = watch.heads(model)
        if seen:
            found.findings += heads.idle(seen, patient.recipe)
            found.findings += heads.duplicates(seen, list(watch.twins()), patient.recipe)
            found.looked_at.append(
                f"heads: {len(seen)} in {len({head.site for head in seen})} attentions, on "
                f"{heads.EXAMPLES} validation examples"
            )


@contextmanager
def _overlooking(what: str, found: Diagnosis) -> Iterator[None]:
    """Note what one part could not look at, so that the others still can."""
    try:
        yield
    except ManyheadsError as error:
        found.not_looked_at.append(f"{what}: {error}")
