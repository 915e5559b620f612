"""Leaks in a run's images: copies and series across splits, marks and files that tell the class."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from manyheads.data.checks import leakage
from manyheads.data.checks.image_checks import look
from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.data.images.pixels import Pixels
from manyheads.doctor.finding import SHOWN, Findings, finding
from manyheads.doctor.run_batches import random_sample
from manyheads.doctor.text_leakage import MANY, SOME
from manyheads.errors import DataError

TRAIN_IMAGES, VALID_IMAGES = 5_000, 1_000
FEW = 1000  # training images by whose pixels and files the class is guessed

# Grey levels of 255. JPEG moves a plain area by 1 or 2; content varies by 30 and more.
STEADY, APART = 4.0, 8.0
# Of the images a property tells, where the most frequent class is at most COMMON.
TOLD = 0.95
COMMON = 0.80
# Bits of 128 in which neighbours of a series differ at most; images of one class mostly do by
# more. A series is called one if half of the neighbours are that near, and few of other pairs.
SERIES, NEAR, OTHERS = 16, 0.5, 0.1
VARIED = 20  # values of a property per image that make it no property: one of so many at most


class ImageSample:
    """Some images of both splits, opened once."""

    def __init__(self, train: ImageSet, valid: ImageSet) -> None:
        self.train = _some(train, TRAIN_IMAGES)
        self.valid = _some(valid, VALID_IMAGES)
        self.few = _some(self.train, FEW)
        self.share = len(self.train) / len(train)  # of the training data
        self.seen = look(self.train), look(self.valid)

    @property
    def has_classes(self) -> bool:
        """Whether there are several classes, and none is nearly all."""
        images = self.train
        if images.multi_label or len(images) < 2:
            return False
        counts = np.bincount(images.labels, minlength=len(images.classes))
        return bool(counts.max() <= COMMON * counts.sum())


def _some(images: ImageSet, wanted: int) -> ImageSet:
    return images.select(random_sample(len(images), wanted))


def images_seen_before(sample: ImageSample) -> Findings:
    """Find validation images that are in the training data, pixel by pixel."""
    train, valid = sample.seen
    known = {digest: place for place, digest in reversed(list(enumerate(train.digests)))}
    shared = [(p, known[digest]) for p, digest in enumerate(valid.digests) if digest in known]
    share = len(shared) / max(1, len(valid.digests)) / sample.share
    if share < SOME or not shared:
        return
    whole = sample.share == 1
    about = "" if whole else f" among {len(train.digests):,} training images looked at"
    yield finding(
        "seen-before:images",
        f"{len(shared):,} of {len(valid.digests):,} validation images{about}",
        *(f"{valid.name(one)} = {train.name(other)}" for one, other in shared[:SHOWN]),
        severity="error" if share >= MANY else "warning",
        about="" if whole else "About ",
        share=min(100, 100 * share),
    )


def mark(sample: ImageSample, preprocessing: Preprocessing) -> Findings:
    """Find an unchanging spot of the images that predicts the class."""
    some = sample.few
    pixels = Pixels(some, preprocessing)[np.arange(len(some))].numpy()
    spot = leakage.find_mark(pixels, some.labels, max_std=STEADY, min_gap=APART)
    if spot is None or spot.right < TOLD:
        return
    values = ", ".join(
        f"{some.classes[int(each)]} {value}"
        for each, value in list(zip(np.unique(some.labels), spot.values, strict=True))[:4]
    )
    # A centre crop of 7/8 removes it.
    places = ((spot.row, preprocessing.height), (spot.column, preprocessing.width))
    at_edge = any(min(place, size - 1 - place) < size // 16 for place, size in places)
    yield finding(
        "label-in-pixels",
        f"row {spot.row}, column {spot.column} of {preprocessing.height} x "
        f"{preprocessing.width}: right for {100 * spot.right:.0f}% of {len(some):,} training "
        "images",
        f"its brightness (0-255): {values}",
        f"for example {some.names[0]}",
        settings={"image.crop": 0.875} if at_edge else {},
    )


def file_properties(sample: ImageSample) -> Findings:
    """Find a size, format or name of the files that predicts the class."""
    some = sample.few
    for what, values in _properties(some):
        if not 1 < len(set(values)) <= max(2, len(values) // VARIED):
            continue
        share = leakage.predictiveness(values, some.labels)
        if share < TOLD:
            continue
        examples = {values[n]: n for n in reversed(range(len(some)))}
        found = finding(
            "label-in-name" if what == "name" else "label-in-file",
            f"right for {100 * share:.0f}% of {len(some):,} training images",
            *(
                f"{value}: {some.classes[int(some.labels[n])]}, as {some.names[n]}"
                for value, n in list(examples.items())[:SHOWN]
            ),
            property=what,
        )
        yield replace(found, kind=f"label-in-{what}")


def _properties(images: ImageSet) -> Iterator[tuple[str, list[str]]]:
    sizes, modes = [], []
    for index in range(len(images)):
        try:
            image = images.open(index)
        except DataError:
            sizes.append("unreadable")
            modes.append("unreadable")
            continue
        values = np.asarray(image)
        sizes.append(f"{values.shape[1]} x {values.shape[0]} pixels")
        modes.append(str(getattr(image, "mode", values.dtype)))
    yield "size", sizes
    yield "colour mode", modes
    yield "format", [Path(name).suffix.lower() or "none" for name in images.names]
    # A folder a class names its images as it likes; a table or one folder for all should not.
    patterns = [leakage.name_pattern(name) for name in images.names]
    own = {c.casefold() for c in images.classes}
    folders = {Path(name).parent.name.casefold() for name in images.names}
    if not folders & own and not any(c in p.casefold() for p in set(patterns) for c in own):
        yield "name", patterns


def series(sample: ImageSample) -> Findings:
    """Find validation images that were drawn from within series, next to near copies."""
    train, valid = sample.seen
    if min(len(train.bits), len(valid.bits)) < 2 or sample.share < 1:
        return
    labels = train.images.labels[train.readable], valid.images.labels[valid.readable]
    names = [[each.name(place) for place in range(len(each.digests))] for each in (train, valid)]
    pairs = leakage.neighbours(names[0], names[1], labels)
    if len(pairs) < 20:  # of fewer, a share says nothing
        return
    distance = [_differ(valid.bits[one], train.bits[other]) for one, other in pairs]
    near = float(np.mean(np.array(distance) <= SERIES))
    # The same validation images beside the training image of their class that is, in the order
    # of names, half of the class away from the neighbour.
    order, away = np.array(leakage.in_order(names[0])), dict[int, int]()
    for each in np.unique(labels[0]):
        same = order[labels[0][order] == each]
        away |= zip(same.tolist(), np.roll(same, -(len(same) // 2)).tolist(), strict=True)
    usual_pairs = [(one, away[other]) for one, other in pairs if away[other] != other]
    apart = [_differ(valid.bits[one], train.bits[other]) for one, other in usual_pairs]
    if not apart:
        return
    usual = float(np.mean(np.array(apart) <= SERIES))
    if near < NEAR or usual > OTHERS:
        return
    closest = sorted(range(len(pairs)), key=lambda n: distance[n])[:SHOWN]
    yield finding(
        "series",
        f"{100 * near:.0f}% look like the training image next to them by name, "
        f"{100 * usual:.0f}% like another one of their class",
        *(f"{names[1][pairs[n][0]]} ~ {names[0][pairs[n][1]]}" for n in closest),
    )


def _differ(one: np.ndarray, other: np.ndarray) -> int:
    return int(np.bitwise_count(one ^ other).sum(dtype=int))
