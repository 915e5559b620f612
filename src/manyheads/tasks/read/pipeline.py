"""Reading printed lines, whole: drawn or photographed lines, a CTC model, character error rate."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.splits import reject_test_split
from manyheads.data.tokenizers.characters import Characters
from manyheads.engines.parity import Parity
from manyheads.errors import DataError, RecipeError
from manyheads.fit.inputs import digest
from manyheads.fit.start_record import start_record
from manyheads.lens.trace.shapes import ShapeLine, walk
from manyheads.measure.parity_inputs import data_to_compare
from manyheads.measure.score import Line, heading, refuse_report, scored
from manyheads.measure.text_metrics import Score
from manyheads.predict.pipeline import Pipeline, Prepared, Say, Section
from manyheads.project.folder import ModelFolder, read_json, write_json
from manyheads.project.paths import find_model
from manyheads.tasks.read.parity import read_parity
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.read.printed_lines import PrintedLines, given_lines, line_split, line_splits
from manyheads.tasks.read.recipe import ReadRecipe, Start
from manyheads.tasks.read.task import ReadTask, letters, measure
from manyheads.train.checkpoint import tensors

SIGNATURES = {
    "cer": "characters to insert, delete or replace, per true character, NFC, greedy",
    "exact": "share of lines without a mistake",
    "loss": "mean CTC loss per letter, natural logarithm",
}


class ReadPipeline(Pipeline[ReadRecipe, Reader]):
    """Lines with their texts in, a reader out."""

    task = "read"
    recipe = ReadRecipe
    predictor = Reader
    forward = ("images",)
    members = ("config",)

    def prepare(self, recipe: ReadRecipe, out: Path, say: Say) -> Prepared:
        """Read or draw the lines; list their letters, or take those of the run."""
        train, valid = line_splits(recipe.data, recipe.image, recipe.render, recipe.seed)
        for part in (train, valid):
            reject_test_split(part.hashes, part.origin)
            _say_left_out(part, say)
        stored = out / "characters.json"
        if stored.exists():
            characters = Characters(read_json(stored))
        else:
            characters = Characters.learn(map(letters, train.texts))
            if recipe.start is not None:  # its letters keep their ids
                known = _start(recipe.start).characters().alphabet
                new = [each for each in characters.alphabet if each not in known]
                characters = Characters(known + "".join(new))
                say(f"starting from {recipe.start.model}: {len(new):,} letters are new")
        say(f"{len(train):,} lines, {len(characters):,} letters")
        config: Any = recipe.config(vocabulary=len(characters))
        _refuse_narrow(train, config.column_width)
        task = ReadTask(train, valid, characters, recipe.train, seed=recipe.seed)
        return Prepared(
            task,
            config,
            lambda folder: write_json(folder / "characters.json", characters.alphabet),
            {"data": digest(*train.hashes, *valid.hashes)},
        )

    def initialize(self, model: nn.Module, recipe: ReadRecipe, out: Path) -> dict[str, Any] | None:
        """Copy the weights of the reader that [start] names; new letters keep fresh ones."""
        if recipe.start is None:
            return None
        folder = _start(recipe.start)
        theirs, ours = tensors(folder.model()), tensors(model)
        rows = len(folder.characters())
        for name, tensor in ours.items():
            place = tensor[:rows] if name.startswith("output.") else tensor
            if name not in theirs or theirs[name].shape != place.shape:
                raise RecipeError(
                    f"start.model: the weights of {folder.path} do not fit model.preset = "
                    f"{recipe.model['preset']!r} ({name}). Give both readers the same [model] and "
                    "image.height."
                )
            with torch.no_grad():
                place.copy_(theirs[name])
        return {"reader": start_record(folder, theirs)}

    def evaluate(self, predictor: Reader, request: EvaluateRequest) -> dict[str, Any]:
        """Measure character errors, of each font by itself as well."""
        refuse_report(predictor.folder.name, request)
        lines, head = _lines_to_measure(cast(ReadRecipe, predictor.folder.recipe), request)
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

    def parity(self, reference: Reader, exported: Reader, request: ParityRequest) -> Parity:
        """Compare the logits of columns, and the texts."""
        recipe = cast(ReadRecipe, reference.folder.recipe)
        lines, head = data_to_compare(
            lambda given: _lines_to_measure(recipe, given), request, "lines"
        )
        return read_parity(reference, exported, lines, head["data"], request.limit)

    def shapes(self, predictor: Reader, given: str) -> list[ShapeLine]:
        """Walk through the reading of an image."""
        return walk(predictor.model, lambda: predictor.read([given]))

    def card(self, folder: ModelFolder) -> Section:
        """Languages, and the command."""
        return Section(
            "Reads printed lines of text in images: the text that is on them.",
            f"manyheads read --model {folder.name} line.png",
            "Trained on lines drawn by a program and nothing else: expect more mistakes on "
            "photographs, on handwriting nothing at all.",
        )


def _lines_to_measure(recipe: ReadRecipe, request: EvaluateRequest) -> tuple[PrintedLines, Line]:
    """Read or draw the lines of a request, and the beginning of the line about them."""
    parts = recipe.data, recipe.image, recipe.render, recipe.seed
    if request.data is None:
        lines = line_split(request.split, *parts)
    else:
        lines = given_lines(request.data, *parts)
    return lines, heading(lines.origin, lines.hashes, request, recipe.data)


def _start(start: Start) -> ModelFolder:
    """Open the reader that a recipe starts from.

    Raises:
        RecipeError: it is a model of another task.
    """
    folder = ModelFolder(find_model(start.model))
    if folder.recipe.task != "read":
        raise RecipeError(
            f"start.model: the task of {folder.path} is {folder.recipe.task!r}; a reader starts "
            "from a reader."
        )
    return folder


def _say_left_out(lines: PrintedLines, say: Say) -> None:
    if lines.left_out:
        why = f", such as {' '.join(lines.missing[:8])}" if lines.missing else ""
        what = (
            "that no font has all characters of" if lines.missing else "without a text or too wide"
        )
        say(f"left out {lines.left_out:,} lines of {lines.origin} {what}{why}")


def _refuse_narrow(lines: PrintedLines, column_width: int) -> None:
    """Refuse lines that have fewer columns than letters: no text could be read in them.

    Raises:
        DataError: that is the case for most lines.
    """
    columns = np.ceil(lines.widths(0) / column_width)
    needed = np.array([len(letters(text)) for text in lines.texts])
    narrow = float((columns < needed).mean())
    if narrow > 0.5:
        raise DataError(
            f"{lines.origin}: {narrow:.0%} of the lines have fewer columns of {column_width} "
            "pixels than their texts have letters. Raise image.height, or lower a number of "
            "model.column_strides."
        )


PIPELINE = ReadPipeline()
