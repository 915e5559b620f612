"""Measuring a stored model."""

from typing import Any, cast

import numpy as np

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.measure.score import Line, heading, refuse_report, scored
from manyheads.measure.text_metrics import Score
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.read.printed_lines import PrintedLines, given_lines, line_split
from manyheads.tasks.read.recipe import ReadRecipe
from manyheads.tasks.read.task import measure

SIGNATURES = {
    "cer": "characters to insert, delete or replace, per true character, NFC, greedy",
    "exact": "share of lines without a mistake",
    "loss": "mean CTC loss per letter, natural logarithm",
}


def evaluate(predictor: Reader, request: EvaluateRequest) -> dict[str, Any]:
    """Measure character errors, of each font by itself as well."""
    refuse_report(predictor.folder.name, request)
    lines, head = lines_to_measure(cast(ReadRecipe, predictor.folder.recipe), request)
    measured = measure(predictor.model, predictor.characters, lines)
    scores = {key: Score(measured.scores[key], sign) for key, sign in SIGNATURES.items()}
    line = head | {"lines": len(lines)} | scored(scores)
    groups = np.array([lines.group(index, 0) for index in range(len(lines))])
    if len(set(groups)) > 1:
        line["groups"] = {
            str(group): 100 * float(measured.edits[of].sum() / measured.lengths[of].sum())
            for group in sorted(set(groups))
            if (of := groups == group).any()
        }
    return line


def lines_to_measure(recipe: ReadRecipe, request: EvaluateRequest) -> tuple[PrintedLines, Line]:
    """Read or draw the lines of a request, and the beginning of the line about them."""
    parts = recipe.data, recipe.image, recipe.render, recipe.seed
    if request.data is None:
        lines = line_split(request.split, *parts)
    else:
        lines = given_lines(request.data, *parts)
    return lines, heading(lines.origin, lines.hashes, request, recipe.data)
