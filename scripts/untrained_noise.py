"""Measure how far untrained models' attentions are from each other and from the trained model's.

    MANYHEADS_DATA=data python scripts/untrained_noise.py    # docs/decisions/untrained.md

Thirty inputs a model. An untrained model is compared with two others, head by head; a distance is
given in units of the mean distance of its layer to a third one, which is what a look computes. The
95th percentile over all models is `NOISE` of lens/measures/attention_difference.py. The second part
says how well an untrained digit classifier's attention draws the digit.
"""

import io
import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch import Tensor

import manyheads
from manyheads.data.images.digits import read_digits
from manyheads.lens.measures.attention_difference import row_distance
from manyheads.lens.trace.attention_reader import Attention, attentions
from manyheads.looking.look_inside import look
from manyheads.looking.untrained import untrained
from manyheads.nn.recording.trace import record
from manyheads.tasks.translate.reference import teacher_forcing

DATA = Path(os.environ.get("MANYHEADS_DATA", "data"))
COUNT = 30
Pass = Callable[[Any], object]


def of_text(predictor: Any, text: str) -> Pass:
    ((best, *_),) = predictor.translate([text], details=True)
    source, target = teacher_forcing(predictor, text, best.tokens)
    return lambda own: own.model(source, target[:, :-1])


def of_image(predictor: Any, image: Image.Image) -> Pass:
    pixels = predictor.preprocessing.normalise(predictor.pixels(image)[None])
    return lambda own: own.model(pixels)


def traced(predictor: Any, run: Pass) -> list[Attention]:
    with torch.inference_mode(), record() as trace:
        run(predictor)
    return attentions(trace)


def measure(name: str, make: Callable[[Any, Any], Pass], inputs: Sequence[Any]) -> Tensor:
    predictor = manyheads.load(name)
    fresh = [untrained(predictor, seed) for seed in range(4)]
    noise, apart = [], []
    with predictor.engine.running():
        for given in inputs:
            run = make(predictor, given)
            for first, second, *others, own in zip(
                *(traced(each, run) for each in [*fresh, predictor]), strict=True
            ):
                unit = row_distance(first, second).mean()
                noise += [row_distance(first, other) / unit for other in others]
                apart.append(row_distance(first, own) / unit)
    found, trained = torch.cat(noise), torch.cat(apart)
    print(
        f"| {name} | {found.median():.2f} | {found.quantile(0.95):.2f} | {trained.median():.2f} "
        f"| {100 * (trained <= found.quantile(0.95)).float().mean():.1f}% |"
    )
    return found


def lines(path: str, column: int | None = None) -> list[str]:
    with (DATA / path).open(encoding="utf-8") as file:
        rows = [line.rstrip("\n") for line in islice(file, COUNT)]
    return rows if column is None else [row.split("\t")[column] for row in rows]


def drawn(images: Sequence[tuple[np.ndarray, Any]], *, fresh: bool) -> float:
    """How many images some head draws: its mean attention goes with the ink, |r| above 0.8."""
    predictor, count = manyheads.load("digits"), 0
    for ink, image in images:
        maps = look(predictor, image, untrained=fresh).view.maps
        heads = [np.array(head)[:, -ink.size :].mean(axis=0) for m in maps for head in m.weights]
        count += max(abs(np.corrcoef(head, ink)[0, 1]) for head in heads) > 0.8
    return count / len(images)


def main() -> None:
    print("| model | untrained, median | 95% | trained, median | heads that do not differ |")
    print("|---|---:|---:|---:|---:|")
    digits = read_digits()
    captions = lines("multi30k/val.en")
    korean = lines("enko/val.tsv", 1)
    dates = [f"{day} {month} 2026" for month in ("March", "July", "May") for day in range(1, 11)]
    small = [digits.read(number) for number in range(COUNT)]
    rows = pq.read_table(DATA / "cifar10" / "train-0-of-4.parquet").slice(0, COUNT).to_pylist()
    photos = [Image.open(io.BytesIO(row["image"])) for row in rows]
    found = [
        measure("multi30k-en-de", of_text, captions),
        measure("en-de", of_text, captions),
        measure("enko-ko-en", of_text, korean),
        measure("date-en-ko", of_text, dates),
        measure("digits", of_image, small),
        measure("cifar10-cct-2-3x2", of_image, photos),
    ]
    print(f"95th percentile of all: {torch.cat(found).quantile(0.95):.2f}")
    fours = [digits.read(int(number)) for number in np.flatnonzero(digits.labels == 4)[:COUNT]]
    pairs = [(np.array(each).reshape(4, 2, 4, 2).mean(axis=(1, 3)).ravel(), each) for each in fours]
    for fresh in (True, False):
        print(f"{'un' * fresh}trained, heads draw {drawn(pairs, fresh=fresh):.0%} of the fours")


if __name__ == "__main__":
    main()
