"""Data leakage: examples on both sides of a split, and marks or file formats that predict a class.

A model learns such a shortcut instead of the task, and validation data with the same shortcut do
not reveal it (Geirhos et al. 2020, "Shortcut Learning in Deep Neural Networks").
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

LETTERS = 4  # a shorter answer may occur in a text by chance


class Shared(NamedTuple):
    """A validation text that is also in the training data."""

    text: str
    valid: int  # its index, from 0
    train: int


def shared_texts(train: Iterable[str], valid: Sequence[str]) -> list[Shared]:
    """Find validation texts that are also training texts, ignoring case and white space."""
    wanted: dict[str, list[int]] = {}
    for index, text in enumerate(valid):
        wanted.setdefault(plain(text), []).append(index)
    shared: dict[int, Shared] = {}
    for number, text in enumerate(train):
        for index in wanted.get(plain(text), ()):
            shared.setdefault(index, Shared(valid[index], index, number))
    return [shared[index] for index in sorted(shared)]


def plain(text: str) -> str:
    """Normalise case and white space."""
    return " ".join(text.casefold().split())


def contains(source: str, target: str) -> bool:
    """Return whether a source contains its whole target and more text."""
    inner, outer = plain(target), plain(source)
    return len(inner) >= LETTERS and inner != outer and inner in outer


class Mark(NamedTuple):
    """A pixel whose value predicts the class."""

    row: int
    column: int
    right: float  # share of images whose class it predicts correctly
    values: tuple[int, ...]  # mean value in each class, 0..255


def find_mark(
    pixels: np.ndarray, labels: np.ndarray, *, max_std: float, min_gap: float
) -> Mark | None:
    """Find the pixel that predicts the class best, if it is nearly constant within each class.

    Content varies from image to image; a stamp, a frame or a logo does not.

    Args:
        pixels: (image, channel, height, width), 0..255.
        labels: (image,) classes.
        max_std: the largest standard deviation of a mark within any class.
        min_gap: the smallest difference of its mean between two classes.
    """
    classes = np.unique(labels)
    grey = pixels.astype(np.float32).mean(axis=1)  # (image, height, width)
    means = np.stack([grey[labels == each].mean(axis=0) for each in classes])
    deviations = np.stack([grey[labels == each].std(axis=0) for each in classes])
    suspicious = (deviations.max(axis=0) <= max_std) & (np.ptp(means, axis=0) >= min_gap)
    best: Mark | None = None
    for row, column in np.argwhere(suspicious):
        middle = means[:, row, column]
        predicted = np.abs(grey[:, row, column][:, None] - middle).argmin(axis=1)
        right = float((classes[predicted] == labels).mean())
        if best is None or right > best.right:
            best = Mark(int(row), int(column), right, tuple(int(value) for value in middle))
    return best


def predictiveness(values: Sequence[str], labels: np.ndarray) -> float:
    """Accuracy of predicting the class from a property, by two-fold cross-validation.

    A value that does not occur in the fitting half counts as a wrong prediction.
    """
    kinds = np.array(values)
    right = 0
    for half in (0, 1):
        learn, held = slice(half, None, 2), slice(1 - half, None, 2)
        fitted, classes = kinds[learn], labels[learn]
        common = {each: np.bincount(classes[fitted == each]).argmax() for each in np.unique(fitted)}
        rows = zip(kinds[held], labels[held], strict=True)
        right += sum(common.get(kind, -1) == label for kind, label in rows)
    return right / max(1, len(labels))


def name_pattern(name: str) -> str:
    """Replace the numbers of a file name by "#", to recognise a series."""
    return re.sub(r"\d+", "#", Path(name).stem)


def in_order(names: Sequence[str]) -> list[int]:
    """Return indices in natural sort order: 9 before 10."""
    parts = [re.split(r"(\d+)", name) for name in names]
    keys = [[int(part) if part.isdigit() else part for part in each] for each in parts]
    return sorted(range(len(names)), key=lambda index: keys[index])


def neighbours(
    train: Sequence[str], valid: Sequence[str], classes: tuple[np.ndarray, np.ndarray]
) -> list[tuple[int, int]]:
    """Pair validation images with the previous training image of their class, by file name.

    Returns:
        Indices into the names of valid, and of train.
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
