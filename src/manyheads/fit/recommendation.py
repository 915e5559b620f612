"""Recommend a recipe for images on this machine, from measured runs only.

`measured.json` beside this file holds one row a run. A row counts for data like its own: about as
many images a class, classes, and pixels, the same channels, one label an image and classes of about
one size. Without such a row the advice has no figure, and the recipe follows rules of thumb.
"""

import json
import math
import os
import shlex
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
import torch

from manyheads.data.checks.image_checks import RARE, UNBALANCED
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.image_file import ImageContent
from manyheads.data.images.image_set import ImageSet
from manyheads.data.text.rows import HUB, LISTINGS
from manyheads.errors import DataError
from manyheads.files import expand_user
from manyheads.project.paths import here
from manyheads.recipe_data.image_data import LabelledImageData
from manyheads.recipe_data.image_splits import find_images
from manyheads.strict_json import dumps

SAMPLE = 200  # images that are opened
LIKE = 4.0  # times as many images a class, or classes
LIKE_SIDE = 2.0  # times as long a side
PATIENCE = 12 * 60.0  # minutes that a recipe may take
BEGIN = "photos-resnet-18"  # the recipe where `init` does not read the data


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measured run."""

    recipe: str
    family: Literal["transformer", "hybrid", "cnn"]
    data: str
    classes: int
    images: int  # trained on
    side: int  # pixels of the shorter side
    accuracy: float
    low: float  # over folds or seeds; the accuracy itself where there is one run
    high: float
    protocol: str
    minutes: float
    hardware: str
    gpu: bool
    finished: bool  # else stopped early: what it reached is a lower limit
    grey: bool = False
    threads: int = 1  # that it was measured on

    @property
    def per_class(self) -> float:
        """Images of a class."""
        return self.images / self.classes


@dataclass(frozen=True)
class Facts:
    """Facts about the data."""

    images: int
    classes: int
    per_class: float
    rarest: int
    most: int
    side: int  # median of the shorter sides
    channels: int  # of most: 1 is grey, 3 is colour
    multi_label: bool
    unreadable: int  # of the sample

    @property
    def unbalanced(self) -> bool:
        """Whether the largest class is many times the smallest."""
        return self.most > UNBALANCED * max(self.rarest, 1)


@dataclass(frozen=True)
class Machine:
    """The machine to train on."""

    cores: int
    memory: float  # GiB
    gpu: str | None
    gpu_memory: float = 0.0  # GiB


@dataclass(frozen=True)
class Advice:
    """A recommended recipe, and why."""

    facts: Facts
    machine: Machine
    recipe: str | None  # None: `init` writes one
    family: str | None
    command: str
    expected: tuple[float, float] | None  # accuracy, if rows speak for these data
    rows: list[Row]  # that the advice rests on
    reasons: list[str]


@cache
def measured() -> list[Row]:
    """Read the table."""
    text = files(__package__).joinpath("measured.json").read_text("utf-8")
    return [Row(**row) for row in json.loads(text)]


def advise(
    name: str, *, image: str = "image", label: str = "label", multi_label: bool = False
) -> Advice:
    """Look at images and at this machine, and recommend a recipe."""
    data = LabelledImageData(train=name, image=image, label=label, multi_label=multi_label)
    images = find_images(here(name), data)
    if not expand_user(name).exists() and expand_user(images.origin).exists():
        data = data.model_copy(update={"train": images.origin})  # it is in the data root
    return recommend(data, look(images), this_machine(), measured())


def look(images: ImageSet) -> Facts:
    """Count labels, and open a sample of the images."""
    sides, channels, unreadable = [], Counter[int](), 0
    for index in evenly_spaced(len(images), SAMPLE):
        try:
            image = images.open(int(index))
        except DataError:
            unreadable += 1
            continue
        sides.append(min(image.shape[:2] if isinstance(image, np.ndarray) else image.size))
        channels[_channels(image)] += 1
    if not sides:
        raise DataError(f"{images.origin}: none of {unreadable} images looked at can be read.")
    counts = images.labels.sum(axis=0)
    if not images.multi_label:
        counts = np.bincount(images.labels, minlength=len(images.classes))
    return Facts(
        images=len(images),
        classes=len(images.classes),
        per_class=float(counts.mean()),
        rarest=int(counts.min()),
        most=int(counts.max()),
        side=int(np.median(sides)),
        channels=channels.most_common(1)[0][0],
        multi_label=images.multi_label,
        unreadable=unreadable,
    )


def _channels(image: ImageContent) -> int:
    """Count what a model would see: palettes and print are colours, transparency is none."""
    if isinstance(image, np.ndarray):
        bands = image.shape[2] if image.ndim == 3 else 1
        return 3 if bands == 4 else bands
    return 1 if image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I") else 3


def this_machine() -> Machine:
    """Describe this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        memory = float("nan")
    if not torch.cuda.is_available():
        return Machine(cores or 1, round(memory, 1), None)
    gpu = torch.cuda.get_device_properties(0)
    return Machine(cores or 1, round(memory, 1), gpu.name, round(gpu.total_memory / 2**30, 1))


def recommend(data: LabelledImageData, facts: Facts, machine: Machine, table: list[Row]) -> Advice:
    """Choose the row like these data with the best accuracy within half a day.

    Without one no accuracy is promised, and `init` is to measure what this machine can train.
    """
    usable = [row for row in table if machine.gpu is not None or not row.gpu]
    like = [row for row in usable if _is_like(row, facts)]
    settings = _settings(data, facts)
    reasons = _about(facts)
    if not like:
        ratios = {row: _ratios(row, facts) for row in usable}  # that of the sides counts twice
        near = min(ratios, key=lambda r: math.prod(ratios[r]) * ratios[r][-1], default=None)
        reasons.append("Nothing like these data was measured by us, so no accuracy is promised.")
        if near is not None:
            reasons.append(f"The nearest, of little relevance to yours: {_said(near, machine)}")
        is_table = data.train.endswith(LISTINGS) and not data.train.startswith(HUB)
        if is_table or expand_user(data.train).is_dir():
            reasons.append(
                "`manyheads init` opens every image, divides them, times a few steps of training "
                "here and writes a recipe that fits; what cannot be used is named and left out."
            )
            own = [data.image, data.label] != ["image", "label"]
            columns = ["--columns", f"{data.image},{data.label}"] if own else []
            command = shlex.join(["manyheads", "init", data.train, *columns])
            command += " && manyheads train mine.toml"
            return Advice(facts, machine, None, None, command, None, [], reasons)
        if facts.channels == 1:
            settings.append("image.mode=L")
        elif facts.channels != 3:
            settings += ["image.mode=bands", f"image.num_channels={facts.channels}"]
        command = shlex.join(["manyheads", "train", BEGIN, *settings])
        return Advice(facts, machine, BEGIN, "cnn", command, None, [], reasons)
    best = max(like, key=lambda r: (_minutes(r, machine) <= PATIENCE, r.finished, r.accuracy))
    spoken = [row for row in like if row.family == best.family and row.finished]
    expected = _range(spoken, facts) if spoken else None
    reasons += [_said(row, machine) for row in sorted(like, key=lambda row: -row.accuracy)]
    if best.family == "cnn":
        patient = best.accuracy < max(row.accuracy for row in like)
        reasons.append(
            "Use a CNN: on data like these it was the best of what "
            + ("finishes here in half a day." if patient else "we measured.")
        )
    if expected is None:
        reasons.append("No run on data like these went to its end: expect more than this.")
    command = shlex.join(["manyheads", "train", best.recipe, *settings])
    return Advice(facts, machine, best.recipe, best.family, command, expected, like, reasons)


def _is_like(row: Row, facts: Facts) -> bool:
    per_class, classes, side = _ratios(row, facts)
    even = not facts.multi_label and not facts.unbalanced
    same_size = max(per_class, classes) <= LIKE and side <= LIKE_SIDE
    return even and same_size and facts.channels == (1 if row.grey else 3)


def _ratios(row: Row, facts: Facts) -> list[float]:
    """Return how many times the images a class, the classes and the sides differ."""
    pairs = (row.per_class, facts.per_class), (row.classes, facts.classes), (row.side, facts.side)
    return [max(one / other, other / one) for one, other in pairs]


def _range(rows: list[Row], facts: Facts) -> tuple[float, float]:
    """Widen the measured range to half of the error and its double: a judgement, not measured."""
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    floor = 100 / facts.classes
    return round(max(floor, 100 - 2 * (100 - low)), 1), round(100 - (100 - high) / 2, 1)


def _minutes(row: Row, machine: Machine) -> float:
    """Estimate minutes on this machine's cores, if they are like those of the measured run."""
    return row.minutes if row.gpu else row.minutes * max(1, row.threads / machine.cores)


def _said(row: Row, machine: Machine) -> str:
    kind = "" if row.finished else " (stopped early: a lower limit)"
    slower = _minutes(row, machine)
    here = f", {slower:.0f} on this machine's cores" if slower > row.minutes else ""
    return (
        f"{row.recipe} ({row.family}): {row.accuracy:.2f}%{kind} on {row.data}, {row.images:,} "
        f"images, {row.classes} classes; {row.protocol}; {row.minutes:g} minutes on "
        f"{row.hardware}{here}"
    )


def _about(facts: Facts) -> list[str]:
    notes = {
        "Several labels an image: validation measures mean average precision and F1, not "
        "accuracy.": facts.multi_label,
        f"{facts.unreadable} of the images looked at cannot be read: see "
        "`manyheads check-data`.": facts.unreadable > 0,
        f"The rarest class has {facts.rarest} images: scores of it are luck.": facts.rarest < RARE,
        f"Classes have from {facts.rarest:,} to {facts.most:,} images: hence "
        'train.class_weights="balanced"; look at recall by class, not at accuracy.': (
            facts.unbalanced
        ),
    }
    return [note for note, applies in notes.items() if applies]


def _settings(data: LabelledImageData, facts: Facts) -> list[str]:
    held = max(min(facts.images // 10, 5000), facts.classes)
    settings = [f"data.train={_text(data.train)}", f"data.hold_out={held}"]
    columns = {"image": data.image, "label": data.label}
    settings += [f"data.{key}={_text(name)}" for key, name in columns.items() if name != key]
    if facts.multi_label:
        settings.append("data.multi_label=true")
    if facts.unbalanced:
        settings.append("train.class_weights=balanced")
    if facts.unreadable or facts.images > SAMPLE:  # not all were opened
        settings.append("data.on_error=skip")
    return settings


def _text(value: str) -> str:
    """Write a text so that a recipe does not read it as a number: a folder may be called 2024."""
    return dumps(value) if value[:1].isdigit() or value in ("true", "false") else value
