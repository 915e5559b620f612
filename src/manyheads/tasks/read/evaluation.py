"""Measuring readers of printed lines: character errors; comparing engines."""

from functools import partial
from typing import Any, cast

import numpy as np
import torch
from PIL import Image

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.line_images import stack
from manyheads.engines.engine_parity import Parity
from manyheads.errors import DataError
from manyheads.measure.outputs import OutputRow
from manyheads.measure.parity_inputs import compare_engines, data_to_compare, relative_difference
from manyheads.measure.score import ROWS, Line, heading, refuse_report, scored
from manyheads.measure.text_metrics import Score, Statistics
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.read.printed_lines import LineSource, PrintedLines, SomeLines
from manyheads.tasks.read.recipe import ReadRecipe
from manyheads.tasks.read.task import by_width, measure

SIGNATURES = {
    "cer": "characters to insert, delete or replace, per true character, NFC, greedy",
    "exact": "share of lines without a mistake",
    "loss": "mean CTC loss per letter, natural logarithm",
}


def evaluate(predictor: Reader, request: EvaluateRequest) -> dict[str, Any]:
    """Measure character errors, of each font by itself as well."""
    refuse_report(predictor.folder.name, request)
    lines, head = lines_to_measure(cast(ReadRecipe, predictor.folder.recipe), request)
    chosen = evenly_spaced(len(lines), request.limit or len(lines)).tolist()
    measured = measure(predictor.model, predictor.characters, SomeLines(lines, chosen))
    scores = {key: Score(measured.scores[key], sign) for key, sign in SIGNATURES.items()}
    line = head | {"lines": len(chosen)} | scored(scores)
    if request.outputs is not None:
        line[ROWS] = [
            OutputRow(
                input=lines.describe(index, 0),
                truth=[lines.texts[index]],
                answer=text,
                score=max(0.0, 100 - 100 * float(edits) / max(int(length), 1)),
                right=not edits,
                image=partial(_line_image, lines, index),
            )
            for index, text, edits, length in zip(
                chosen, measured.texts, measured.edits, measured.lengths, strict=True
            )
        ]
    groups = np.array([lines.group(index, 0) for index in chosen])
    if len(set(groups)) > 1:
        line["groups"] = {
            str(group): 100 * float(measured.edits[of].sum() / measured.lengths[of].sum())
            for group in sorted(set(groups))
            if (of := groups == group).any()
        }
    return line


def _line_image(lines: PrintedLines, index: int) -> Image.Image:
    return Image.fromarray(lines.pixels(index, 0).astype(np.uint8))


def statistics(predictor: Reader, request: EvaluateRequest) -> tuple[Line, dict[str, Statistics]]:
    """Return what scores are computed from, for each line."""
    lines, head = lines_to_measure(cast(ReadRecipe, predictor.folder.recipe), request)
    measured = measure(predictor.model, predictor.characters, lines)
    rows = np.stack([measured.edits, measured.lengths], axis=1).astype(float)
    return head, {
        "cer": Statistics(rows, lambda sums: 100 * float(sums[0] / sums[1]), SIGNATURES["cer"]),
        "exact": Statistics.mean(100.0 * (measured.edits == 0), SIGNATURES["exact"]),
    }


def lines_to_measure(recipe: ReadRecipe, request: EvaluateRequest) -> tuple[PrintedLines, Line]:
    """Read or draw the lines of a request, and the beginning of the line about them."""
    source = LineSource(recipe.data, recipe.image, recipe.render, recipe.seed)
    lines = source.split(request.split) if request.data is None else source.other(request.data)
    return lines, heading(lines.origin, lines.hashes, request, recipe.data)


def parity(reference: Reader, exported: Reader, request: ParityRequest) -> Parity:
    """Read the same lines on both; wider ones than the reader reads in one piece are left out.

    Raises:
        DataError: all lines are.
    """
    recipe = cast(ReadRecipe, reference.folder.recipe)
    lines, head = data_to_compare(partial(lines_to_measure, recipe), request, "lines")
    most = reference.image.max_width
    fit = np.flatnonzero(lines.widths(0) <= most)
    if not len(fit):
        raise DataError(
            f"{lines.origin}: no line is at most {most} pixels wide at a height of "
            f"{reference.image.height}, as image.max_width says. Give others as `data`."
        )
    some = SomeLines(lines, fit[evenly_spaced(len(fit), request.limit)].tolist())
    return compare_engines(
        reference,
        exported,
        lambda each: measure(each.model, each.characters, some),
        answers=lambda measured: measured.texts,
        difference=lambda *_: _difference(reference.model, exported.model, some),
        score=lambda measured: measured.scores["cer"],
        metric="cer",
        lower_is_better=True,
        compared="logits",
        data=head["data"],
    )


@torch.inference_mode()
def _difference(ours: Any, theirs: Any, lines: SomeLines) -> float:
    difference = 0.0
    for width, members in by_width(lines.widths(0).tolist()):
        images = stack([lines.pixels(index, 0) for index in members], width)
        difference = np.maximum(difference, relative_difference(ours(images), theirs(images)))
    return float(difference)  # nan stays
