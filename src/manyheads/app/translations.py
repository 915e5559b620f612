"""Measuring translations: scores, the same by length and by group, signs of trouble, and time."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manyheads.app.folder import write_atomically
from manyheads.app.paths import make_room
from manyheads.app.predict import Predictor, Translator
from manyheads.app.recipe import TranslateRecipe
from manyheads.app.texts import one_line
from manyheads.data.text import Corpus
from manyheads.errors import UsageError, nearest
from manyheads.tasks.alignment import reads_source
from manyheads.tasks.lengths import length_bins
from manyheads.tasks.metrics import TEXT_METRICS, Score, TextMetric
from manyheads.tasks.watch import Watch, signs

ALONE = 100  # sentences translated one at a time to measure how long an answer takes


@dataclass(frozen=True, kw_only=True)
class Report:
    """What to measure besides the metrics of the recipe."""

    metrics: tuple[TextMetric, ...] = ()
    by_length: bool = False
    timing: bool = False
    outputs: Path | None = None  # where to write the translations, one a line
    alignment: bool = False  # how well attention says where words come from


def after_training(predictor: Predictor) -> Report | None:
    """Say what to measure once training is over: of translators that attend, the alignment too."""
    if isinstance(predictor, Translator) and reads_source(predictor.model):
        return Report(alignment=True)
    return None


def metrics(names: Iterable[str]) -> tuple[TextMetric, ...]:
    """Check the names of metrics.

    Raises:
        UsageError: there is no such metric.
    """
    for name in names:
        if name not in TEXT_METRICS:
            raise UsageError(
                f"There is no metric {name!r}{nearest(name, TEXT_METRICS)}"
                f"Metrics: {', '.join(TEXT_METRICS)}."
            )
    return tuple(known for name in names for known in TEXT_METRICS if known == name)


def measure(
    translator: Translator, corpus: Corpus, report: Report
) -> tuple[list[str], dict[str, Score], dict[str, Any]]:
    """Translate a corpus; return outputs, scores, and what else there is for the log."""
    recipe = translator.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    target = recipe.data.target
    names = dict.fromkeys([*recipe.evaluate.metrics, *report.metrics])
    for name in names:
        TEXT_METRICS[name](["text"], ["text"], target)  # a missing package is found at once
    if report.outputs is not None:
        make_room(report.outputs)
    if report.timing:
        translator.translate(corpus.source[:1])  # the first call sets things up
    began = time.perf_counter()
    found = [best[0] for best in translator.translate(corpus.source)]
    seconds = time.perf_counter() - began
    outputs = [each.text for each in found]
    if report.outputs is not None:
        write_outputs(report.outputs, outputs)
    scores: dict[str, Score] = {
        name: TEXT_METRICS[name](outputs, corpus.target, target) for name in names
    }
    line: dict[str, Any] = {"pairs": len(corpus), "beams": translator.decode.beams}
    if corpus.groups is not None:
        line["groups"] = by_group(corpus, outputs, recipe)
    if report.by_length:
        line["by_length"] = by_length(corpus, outputs, list(names), recipe)
    if report.timing:
        line["timing"] = {
            "sentences_per_second": len(found) / seconds,
            "tokens_per_second": sum(len(each.tokens) for each in found) / seconds,
            **latency(translator, corpus.source),
            "threads": torch.get_num_threads(),
            "device": next(translator.model.parameters()).device.type,
        }
    watch = Watch(corpus.source, corpus.target)
    signed = signs(corpus.source, outputs, corpus.target)
    line["signs"] = signed._asdict()
    if remarks := watch.remarks(signed):
        line["remarks"] = list(remarks.values())
    return outputs, scores, line


def by_group(corpus: Corpus, outputs: Sequence[str], recipe: TranslateRecipe) -> dict[str, float]:
    """Score each kind of pair by the headline metric."""
    assert corpus.groups is not None
    members: dict[str, list[int]] = {}
    for index, group in enumerate(corpus.groups):
        members.setdefault(group, []).append(index)
    name = recipe.evaluate.metrics[0]
    return {
        group: _score(name, corpus, outputs, chosen, recipe.data.target)
        for group, chosen in members.items()
    }


def by_length(
    corpus: Corpus, outputs: Sequence[str], names: Sequence[TextMetric], recipe: TranslateRecipe
) -> dict[str, Any]:
    """Score sentences of like length by every metric."""
    unit, bins = length_bins(corpus.source, recipe.data.source)
    return {
        "unit": unit,
        "bins": [
            {"first": each.first, "last": each.last, "pairs": len(each.members)}
            | {
                name: _score(name, corpus, outputs, each.members, recipe.data.target)
                for name in names
            }
            for each in bins
        ],
    }


def latency(translator: Translator, sources: Sequence[str]) -> dict[str, float]:
    """Translate sentences from all over a corpus one at a time."""
    chosen = np.unique(np.linspace(0, len(sources) - 1, ALONE).round().astype(int))
    milliseconds = []
    for index in chosen:
        began = time.perf_counter()
        translator.translate([sources[index]])
        milliseconds.append(1000 * (time.perf_counter() - began))
    middle, slow = np.quantile(milliseconds, [0.5, 0.95])
    return {
        "alone": len(chosen),
        "median_milliseconds": float(middle),
        "p95_milliseconds": float(slow),
    }


def write_outputs(path: Path, outputs: Iterable[str]) -> None:
    """Write translations so that line N belongs to pair N, whatever a model may put out."""
    write_atomically(path, "".join(f"{one_line(output)}\n" for output in outputs).encode())


def _score(
    name: TextMetric, corpus: Corpus, outputs: Sequence[str], chosen: Sequence[int], language: str
) -> float:
    references = [corpus.target[index] for index in chosen]
    return TEXT_METRICS[name]([outputs[index] for index in chosen], references, language).value
