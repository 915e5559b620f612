"""Which recipe for these pictures on this machine: from what we measured, and nothing else.

`measured.json` beside this file holds one row a measured run. A row speaks for data like its own:
about as many pictures a class, as many classes, and as many pixels. Where no row does, the advice
says so and gives no figure.
"""

import json
import math
import os
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from manyheads.app.paths import here, shipped
from manyheads.app.recipe import ClassifyData
from manyheads.app.sources import find_images
from manyheads.data.formats import HUB
from manyheads.data.image_checks import RARE, UNBALANCED
from manyheads.data.images import ImageSet
from manyheads.errors import DataError
from manyheads.models.presets import PRESETS

SAMPLE = 200  # pictures that are opened
LIKE = 4.0  # times as many pictures a class, or classes
LIKE_SIDE = 2.0  # times as long a side
FEW = 1000  # pictures a class, below which a network that knows of neighbourhoods learns faster
CNN = ("resnet-18", "resnet")  # presets that begin with one of these


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

    @property
    def per_class(self) -> float:
        """Pictures of a class."""
        return self.images / self.classes


class Facts(NamedTuple):
    """What the data are."""

    images: int
    classes: int
    per_class: float
    rarest: int
    most: int
    side: int  # median of the shorter sides
    grey: bool
    multi_label: bool
    unreadable: int  # of the sample


class Machine(NamedTuple):
    """What there is to train on."""

    cores: int
    memory: float  # GiB
    gpu: str | None


class Advice(NamedTuple):
    """What to do, and why."""

    facts: Facts
    machine: Machine
    recipe: str
    family: str
    command: str
    expected: tuple[float, float] | None  # accuracy, if rows speak for these data
    rows: list[Row]  # that the advice rests on
    reasons: list[str]

    def as_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        plain = self._asdict()
        plain["facts"], plain["machine"] = self.facts._asdict(), self.machine._asdict()
        plain["rows"] = [asdict(row) for row in self.rows]
        return plain


@cache
def measured() -> list[Row]:
    """Read the table."""
    text = files("manyheads.app").joinpath("measured.json").read_text(encoding="utf-8")
    return [Row(**row) for row in json.loads(text)]


def advise(
    name: str, *, image: str = "image", label: str = "label", multi_label: bool = False
) -> Advice:
    """Look at pictures and at this machine, and recommend a recipe.

    Raises:
        NotFoundError: there are no such data.
        DataError: none of them can be read.
    """
    data = ClassifyData(train="", image=image, label=label, multi_label=multi_label)
    images = find_images(name if name.startswith(HUB) else here(name), data)
    return recommend(name, look(images), this_machine(), measured())


def look(images: ImageSet) -> Facts:
    """Count labels, and open a sample of the pictures."""
    chosen = np.linspace(0, len(images) - 1, min(SAMPLE, len(images))).round().astype(int)
    sides, greys, unreadable = [], [], 0
    for index in np.unique(chosen):
        try:
            values = np.asarray(images.open(int(index)))
        except DataError:
            unreadable += 1
            continue
        sides.append(min(values.shape[:2]))
        greys.append(values.ndim == 2 or values.shape[2] == 1)
    if not sides:
        raise DataError(f"{images.origin}: none of {unreadable} pictures looked at can be read.")
    counts = (
        images.labels.sum(axis=0)
        if images.multi_label
        else np.bincount(images.labels, minlength=len(images.classes))
    )
    return Facts(
        images=len(images),
        classes=len(images.classes),
        per_class=len(images) / len(images.classes),
        rarest=int(counts.min()),
        most=int(counts.max()),
        side=int(np.median(sides)),
        grey=all(greys),
        multi_label=images.multi_label,
        unreadable=unreadable,
    )


def this_machine() -> Machine:
    """Say what this machine has."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        memory = float("nan")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return Machine(cores or 1, round(memory, 1), gpu)


def recommend(name: str, facts: Facts, machine: Machine, table: list[Row]) -> Advice:
    """Choose a row of the table for these data on this machine.

    Rows like the data decide by their accuracy. Where there is none, the row of the nearest size
    names a recipe to begin with, and no accuracy is promised.
    """
    usable = [row for row in table if machine.gpu is not None or not row.gpu]
    like = [row for row in usable if _is_like(row, facts)]
    reasons = _about(facts)
    if like:
        best = max(like, key=lambda row: (row.finished, row.accuracy))
        spoken = [row for row in like if row.family == best.family and row.finished]
        expected = _range(spoken, facts) if spoken else None
        reasons += [_said(row) for row in sorted(like, key=lambda row: -row.accuracy)]
        if best.family == "cnn":
            reasons.append("Use a CNN: on data like these it was the best of what we measured.")
        if expected is None:
            reasons.append("No run on data like these went to its end: expect more than this.")
        recipe, family, preset = best.recipe, best.family, ""
    else:
        nearest = min(usable, key=lambda row: _distance(row, facts))
        expected = None
        reasons.append(
            "Our table has nothing near these data, so no accuracy is promised. The nearest: "
            + _said(nearest)
        )
        recipe, family, preset = nearest.recipe, nearest.family, ""
        if facts.per_class < FEW and nearest.family != "cnn":
            reasons.append(
                f"Use a CNN, or start from a trained model (start.model): with under {FEW:,} "
                "pictures a class a Transformer from scratch has to learn what a convolution knows "
                "(Dosovitskiy et al. 2021, section 4.3). A rule of thumb, not measured here."
            )
            preset = _cnn_preset()
            family = "cnn" if preset else family
    return Advice(
        facts,
        machine,
        recipe,
        family,
        _command(name, recipe, facts, preset),
        expected,
        like,
        reasons,
    )


def _is_like(row: Row, facts: Facts) -> bool:
    return (
        not facts.multi_label
        and _times(row.per_class, facts.per_class) <= LIKE
        and _times(row.classes, facts.classes) <= LIKE
        and _times(row.side, facts.side) <= LIKE_SIDE
    )


def _times(one: float, other: float) -> float:
    return max(one / other, other / one)


def _distance(row: Row, facts: Facts) -> float:
    return (
        math.log(_times(row.per_class, facts.per_class))
        + math.log(_times(row.classes, facts.classes))
        + 2 * math.log(_times(row.side, facts.side))
    )


def _range(rows: list[Row], facts: Facts) -> tuple[float, float]:
    """Widen what was measured: other data of the same size are easier or harder by as much again.

    How wide is a judgement, not a measurement: half of the error, or its double.
    """
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    floor = 100 / facts.classes
    return round(max(floor, 100 - 2 * (100 - low)), 1), round(100 - (100 - high) / 2, 1)


def _said(row: Row) -> str:
    kind = "" if row.finished else " (stopped early: a lower limit)"
    return (
        f"{row.recipe} ({row.family}): {row.accuracy:.2f}%{kind} on {row.data}, {row.images:,} "
        f"pictures, {row.classes} classes; {row.protocol}; {row.minutes:g} minutes on "
        f"{row.hardware}"
    )


def _about(facts: Facts) -> list[str]:
    """Say what about the data matters whatever the model is."""
    said = []
    if facts.multi_label:
        said.append("Several labels a picture: our table has no such runs.")
    if facts.unreadable:
        said.append(
            f"{facts.unreadable} of the pictures looked at cannot be read: see "
            "`manyheads check-data`."
        )
    if facts.rarest < RARE:
        said.append(
            f"The rarest class has {facts.rarest} pictures: what is measured of it is luck."
        )
    if facts.most > UNBALANCED * max(facts.rarest, 1):
        said.append(
            f"Classes have from {facts.rarest:,} to {facts.most:,} pictures: hence "
            'train.class_weights="balanced"; look at recall by class, not at accuracy.'
        )
    return said


def _cnn_preset() -> str:
    return next((name for start in CNN for name in PRESETS if name.startswith(start)), "")


def _command(name: str, recipe: str, facts: Facts, preset: str) -> str:
    held = max(min(facts.images // 10, 5000), facts.classes)
    words = [f"manyheads train {recipe}", f"data.train={name}", f"data.hold_out={held}"]
    if facts.most > UNBALANCED * max(facts.rarest, 1):
        words.append("train.class_weights=balanced")
    if preset:
        words.append(f"# with model.preset = {preset!r} in a copy of the recipe")
    assert recipe in shipped("recipes"), recipe
    return " ".join(words)
