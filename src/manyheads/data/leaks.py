"""What gives the answer away: texts and pictures on both sides of a split, marks, file formats.

A model that can read the answer off such a thing learns nothing else, and its validation, which has
the same marks, calls it perfect (Geirhos et al. 2020, "Shortcut Learning in Deep Neural Networks").
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

LETTERS = 4  # a shorter answer may stand in a text by chance


class Shared(NamedTuple):
    """A validation text that training has seen."""

    text: str
    valid: int  # where it stands, from 0
    train: int


def shared_texts(train: Iterable[str], valid: Sequence[str]) -> list[Shared]:
    """Find the validation texts that are also in training, whatever their case and spaces."""
    wanted: dict[str, list[int]] = {}
    for index, text in enumerate(valid):
        wanted.setdefault(plain(text), []).append(index)
    found: dict[int, Shared] = {}
    for number, text in enumerate(train):
        for index in wanted.get(plain(text), ()):
            found.setdefault(index, Shared(valid[index], index, number))
    return [found[index] for index in sorted(found)]


def plain(text: str) -> str:
    """Leave out of a text what makes no difference."""
    return " ".join(text.casefold().split())


def contains(source: str, target: str) -> bool:
    """Say whether a source has the whole of its target in it, and more besides."""
    inner, outer = plain(target), plain(source)
    return len(inner) >= LETTERS and inner != outer and inner in outer


class Mark(NamedTuple):
    """A pixel that alone tells the class."""

    row: int
    column: int
    right: float  # share of the pictures whose class it tells
    values: tuple[int, ...]  # of each class, 0..255


def find_mark(
    pixels: np.ndarray, labels: np.ndarray, *, steady: float, apart: float
) -> Mark | None:
    """Find the pixel that tells the most classes apart, if any hardly varies within them.

    Content varies from picture to picture; a stamp, a frame or a logo does not.

    Args:
        pixels: (picture, channel, height, width), 0..255.
        labels: (picture,) classes.
        steady: the largest standard deviation of a mark within any class.
        apart: the smallest difference of its mean between two classes.
    """
    classes = np.unique(labels)
    grey = pixels.astype(np.float32).mean(axis=1)  # (picture, height, width)
    means = np.stack([grey[labels == each].mean(axis=0) for each in classes])
    deviations = np.stack([grey[labels == each].std(axis=0) for each in classes])
    suspicious = (deviations.max(axis=0) <= steady) & (np.ptp(means, axis=0) >= apart)
    best: Mark | None = None
    for row, column in np.argwhere(suspicious):
        middle = means[:, row, column]
        said = np.abs(grey[:, row, column][:, None] - middle).argmin(axis=1)
        right = float((classes[said] == labels).mean())
        if best is None or right > best.right:
            best = Mark(int(row), int(column), right, tuple(int(value) for value in middle))
    return best


def tells(values: Sequence[str], labels: np.ndarray) -> float:
    """Say how often a property tells the class: learned on one half, tried on the other.

    A value that the first half does not have tells nothing.
    """
    kinds = np.array(values)
    right = 0
    for half in (0, 1):
        learn, held = slice(half, None, 2), slice(1 - half, None, 2)
        common = {
            kind: np.bincount(labels[learn][kinds[learn] == kind]).argmax()
            for kind in np.unique(kinds[learn])
        }
        right += sum(
            common.get(kind, -1) == label
            for kind, label in zip(kinds[held], labels[held], strict=True)
        )
    return right / max(1, len(labels))


def name_pattern(name: str) -> str:
    """Return a file name with its numbers left out: how a series was named."""
    return re.sub(r"\d+", "#", Path(name).stem)


def in_order(names: Sequence[str]) -> list[int]:
    """Put names in the order in which people count: 9 before 10."""
    keys = [
        [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
        for name in names
    ]
    return sorted(range(len(names)), key=lambda index: keys[index])


def neighbours(
    train: Sequence[str], valid: Sequence[str], classes: tuple[np.ndarray, np.ndarray]
) -> list[tuple[int, int]]:
    """Pair validation pictures with the training picture of their class that is next in order.

    Args:
        train: names of the training pictures.
        valid: names of the validation pictures.
        classes: of both.

    Returns:
        Indices into valid and into train.
    """
    names = [*train, *valid]
    labels = np.concatenate(classes)
    last: dict[int, int] = {}
    found = []
    for index in in_order(names):
        label = int(labels[index])
        if index < len(train):
            last[label] = index
        elif label in last:
            found.append((index - len(train), last[label]))
    return found
