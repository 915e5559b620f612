"""What in a run's pictures gives its classes away, or makes its validation worth nothing."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from manyheads.app.doctor.finding import SHOWN, Finding
from manyheads.app.doctor.leaks import MANY, SOME
from manyheads.app.doctor.samples import PictureSamples, spread
from manyheads.app.recipe import ClassifyRecipe, Recipe
from manyheads.data.image_checks import look
from manyheads.data.images import ImageSet
from manyheads.data.leaks import find_mark, in_order, name_pattern, neighbours, tells
from manyheads.errors import DataError
from manyheads.tasks.classify import Pixels

TRAIN_PICTURES, VALID_PICTURES = 5_000, 1_000

# Grey levels of 255. JPEG moves a plain area by 1 or 2; content varies by 30 and more.
STEADY, APART = 4.0, 8.0
# Of the pictures a property tells, where the most frequent class is at most COMMON.
TOLD = 0.95
COMMON = 0.80
# Bits of 128 in which neighbours of a series differ at most; pictures of one class mostly do by
# more. A series is called one if half of the neighbours are that near, and few of other pairs.
SERIES, NEAR, OTHERS = 16, 0.5, 0.1
VARIED = 20  # values of a property per picture that make it no property: one of so many at most


class Album:
    """Some pictures of both splits, opened once."""

    def __init__(self, samples: PictureSamples) -> None:
        self.train = _some(samples.images[0], TRAIN_PICTURES)
        self.valid = _some(samples.images[1], VALID_PICTURES)
        self.share = len(self.train) / len(samples.images[0])  # of the training data
        threads = torch.get_num_threads()
        self.seen = look(self.train, threads=threads), look(self.valid, threads=threads)


def _some(images: ImageSet, wanted: int) -> ImageSet:
    return images.select(spread(len(images), wanted))


def pictures_seen_before(album: Album) -> list[Finding]:
    """Say if validation pictures are in the training data, pixel by pixel."""
    train, valid = album.seen
    known = {digest: place for place, digest in reversed(list(enumerate(train.digests)))}
    shared = [(p, known[digest]) for p, digest in enumerate(valid.digests) if digest in known]
    share = len(shared) / max(1, len(valid.digests)) / album.share
    if share < SOME or not shared:
        return []
    about = "" if album.share == 1 else f" among {len(train.digests):,} training pictures looked at"
    return [
        Finding(
            kind="seen-before",
            severity="error" if share >= MANY else "warning",
            what=f"{'' if album.share == 1 else 'About '}{min(100, 100 * share):.0f}% of the "
            "validation pictures are in the training data as well: the validation measures memory.",
            evidence=(
                f"{len(shared):,} of {len(valid.digests):,} validation pictures{about}",
                *(f"{valid.name(one)} = {train.name(other)}" for one, other in shared[:SHOWN]),
            ),
            remedy="Remove them from the training data; `manyheads check-data` with --valid, or "
            "of the recipe, lists them all.",
        )
    ]


def mark(album: Album, recipe: Recipe) -> list[Finding]:
    """Say if one unchanging spot of the pictures tells the class."""
    images = album.train
    if not isinstance(recipe, ClassifyRecipe) or not _has_classes(images):
        return []
    some = _some(images, 1000)
    pixels = Pixels(some, recipe.image)[np.arange(len(some))].numpy()
    found = find_mark(pixels, some.labels, steady=STEADY, apart=APART)
    if found is None or found.right < TOLD:
        return []
    values = ", ".join(
        f"{some.classes[int(each)]} {value}"
        for each, value in list(zip(np.unique(some.labels), found.values, strict=True))[:4]
    )
    return [
        Finding(
            kind="label-in-pixels",
            severity="error",
            what="One spot of the pictures tells the class by itself: a mark, not content.",
            evidence=(
                f"row {found.row}, column {found.column} of {recipe.image.height} x "
                f"{recipe.image.width}: right for {100 * found.right:.0f}% of {len(some):,} "
                "training pictures",
                f"its brightness (0-255): {values}",
                f"for example {some.names[0]}",
            ),
            remedy="Cut the mark off (a smaller image.crop), or paint it over in all pictures: a "
            "model will read it and nothing else.",
            settings={"image.crop": 0.875} if _at_the_edge(found.row, found.column, recipe) else {},
        )
    ]


def _at_the_edge(row: int, column: int, recipe: ClassifyRecipe) -> bool:
    """Say whether a spot is among those that a centre crop of 7/8 removes."""
    places = ((row, recipe.image.height), (column, recipe.image.width))
    return any(min(place, size - 1 - place) < size // 16 for place, size in places)


def file_properties(album: Album) -> list[Finding]:
    """Say if size, format or name of the files tell the class."""
    images = album.train
    if not _has_classes(images):
        return []
    some = _some(images, 1000)
    found = []
    for what, values in _properties(some):
        if not 1 < len(set(values)) <= max(2, len(values) // VARIED):
            continue
        share = tells(values, some.labels)
        if share < TOLD:
            continue
        named = what == "name"
        examples = {values[n]: n for n in reversed(range(len(some)))}
        found.append(
            Finding(
                kind=f"label-in-{what}",
                severity="note" if named else "warning",
                what=f"The {what} of a file tells its class.",
                evidence=(
                    f"right for {100 * share:.0f}% of {len(some):,} training pictures",
                    *(
                        f"{value}: {some.classes[int(some.labels[n])]}, as {some.names[n]}"
                        for value, n in list(examples.items())[:SHOWN]
                    ),
                ),
                remedy="The model does not see names, but series that were taken one class at a "
                "time share light, place and camera: is that what it learns?"
                if named
                else "The classes came from different sources, and a model can tell their traces "
                "(scaling, compression) apart: save all pictures in one size and format, and "
                "validate on pictures of one source.",
            )
        )
    return found


def _properties(images: ImageSet) -> Iterator[tuple[str, list[str]]]:
    """Yield what can be known of files without looking at pixels; a value for each picture."""
    sizes, modes = [], []
    for index in range(len(images)):
        try:
            picture = images.open(index)
        except DataError:
            sizes.append("unreadable")
            modes.append("unreadable")
            continue
        values = np.asarray(picture)
        sizes.append(f"{values.shape[1]} x {values.shape[0]} pixels")
        modes.append(str(getattr(picture, "mode", values.dtype)))
    yield "size", sizes
    yield "colour mode", modes
    yield "format", [Path(name).suffix.lower() or "none" for name in images.names]
    # A folder a class names its pictures as it likes; a table or one folder for all should not.
    patterns = [name_pattern(name) for name in images.names]
    own = {c.casefold() for c in images.classes}
    folders = {Path(name).parent.name.casefold() for name in images.names}
    if not folders & own and not any(c in p.casefold() for p in set(patterns) for c in own):
        yield "name", patterns


def series(album: Album, recipe: Recipe) -> list[Finding]:
    """Say if validation pictures were drawn from the midst of series: they stand next to copies."""
    if not isinstance(recipe, ClassifyRecipe) or not recipe.data.hold_out:
        return []
    train, valid = album.seen
    if (
        album.share < 1
        or not _has_classes(album.train)
        or min(len(train.bits), len(valid.bits)) < 2
    ):
        return []
    labels = train.images.labels[train.readable], valid.images.labels[valid.readable]
    names = [[each.name(place) for place in range(len(each.digests))] for each in (train, valid)]
    pairs = neighbours(names[0], names[1], labels)
    if len(pairs) < 20:  # of fewer, a share says nothing
        return []
    distance = [_differ(valid.bits[one], train.bits[other]) for one, other in pairs]
    near = float(np.mean(np.array(distance) <= SERIES))
    # The same validation pictures beside the training picture of their class that is, in the order
    # of names, half of the class away from the neighbour.
    by_class: dict[int, list[int]] = {}
    rank = {}
    for index in in_order(names[0]):
        same = by_class.setdefault(int(labels[0][index]), [])
        rank[index] = len(same)
        same.append(index)
    apart = []
    for one, other in pairs:
        same = by_class[int(labels[1][one])]
        away = same[(rank[other] + len(same) // 2) % len(same)]
        if away != other:
            apart.append(_differ(valid.bits[one], train.bits[away]))
    if not apart:
        return []
    usual = float(np.mean(np.array(apart) <= SERIES))
    if near < NEAR or usual > OTHERS:
        return []
    closest = sorted(range(len(pairs)), key=lambda n: distance[n])[:SHOWN]
    return [
        Finding(
            kind="series",
            severity="error",
            what="Validation pictures are neighbours of training pictures in one series: the "
            "validation measures memory.",
            evidence=(
                f"{100 * near:.0f}% look like the training picture next to them by name, "
                f"{100 * usual:.0f}% like another one of their class",
                *(f"{names[1][pairs[n][0]]} ~ {names[0][pairs[n][1]]}" for n in closest),
            ),
            remedy="Frames of a film and shots of one session belong on one side: put whole series "
            "into a folder of their own and name it as data.valid, with data.hold_out = 0.",
        )
    ]


def _differ(one: np.ndarray, other: np.ndarray) -> int:
    return int(np.bitwise_count(one ^ other).sum(dtype=int))


def _has_classes(images: ImageSet) -> bool:
    """Say whether there are classes to be told, and none is nearly all."""
    if images.multi_label or len(images) < 2:
        return False
    counts = np.bincount(images.labels, minlength=len(images.classes))
    return bool(counts.max() <= COMMON * counts.sum())
