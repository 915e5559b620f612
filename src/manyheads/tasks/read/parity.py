"""Compare a reader of printed lines on an engine with the same on torch."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch

from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.line_image import stack
from manyheads.engines.engine_parity import Parity
from manyheads.errors import DataError
from manyheads.measure.parity_inputs import compare_engines, data_to_compare, relative_difference
from manyheads.tasks.read.evaluation import lines_to_measure
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.read.printed_lines import PrintedLines
from manyheads.tasks.read.recipe import ReadRecipe
from manyheads.tasks.read.task import by_width, measure


class SomeLines:
    """Some lines of a set."""

    def __init__(self, lines: PrintedLines, chosen: Sequence[int]) -> None:
        self.lines = lines
        self.chosen = chosen
        self.texts = [lines.texts[index] for index in chosen]

    def widths(self, epoch: int) -> np.ndarray:
        """Return the width of each line."""
        return self.lines.widths(epoch)[self.chosen]

    def pixels(self, index: int, epoch: int) -> np.ndarray:
        """Return a line: (height, width), 0..255, dark on light."""
        return self.lines.pixels(self.chosen[index], epoch)

    def describe(self, index: int, epoch: int) -> str:
        """Name a line for messages."""
        return self.lines.describe(self.chosen[index], epoch)


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
    """Return the largest difference of logits, by the largest of its batch."""
    difference = 0.0
    for width, members in by_width(lines.widths(0).tolist()):
        images = stack([lines.pixels(index, 0) for index in members], width)
        difference = np.maximum(difference, relative_difference(ours(images), theirs(images)))
    return float(difference)  # nan stays
