"""Check labelled images: open each one once; findings list files and remedies."""

import errno
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from manyheads.data.checks.image_fingerprints import digest, perceptual, repeated, similar
from manyheads.data.checks.issue_types import SEVERITIES, IssueType, Severity, issue_types
from manyheads.data.images.image_file import ANIMATED, ImageContent, naming
from manyheads.data.images.image_set import ImageSet, Preprocessing, in_threads
from manyheads.errors import UnreadableError

FEW = 5  # names listed in a finding
TINY = 8  # pixels
NEAR = 4  # bits of 128 in which near duplicates differ
LONG = 4  # times as long as wide
RARE = 10  # images of a class
UNBALANCED = 10  # times as many of the most frequent class as of the rarest
ALIKE = 0.8  # of two class names
USUAL = ("RGB", "RGBA", "L", "LA", "P", "1")  # modes of Pillow
GONE = os.strerror(errno.ENOENT)

_LIMITS = {"rare": RARE, "unbalanced": UNBALANCED, "tiny": TINY, "long": LONG}
ISSUE_TYPES = issue_types("image_issues.toml", **_LIMITS)


@dataclass(frozen=True, slots=True)
class ImageFinding:
    """An issue found in an image set: count, examples and remedy."""

    kind: str
    severity: Severity
    what: str
    remedy: str
    count: int
    examples: tuple[str, ...]  # the first few


@dataclass
class Seen:
    """The fingerprints and issues of all images of a set."""

    images: ImageSet
    readable: list[int] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)  # of the readable ones
    bits: list[np.ndarray] = field(default_factory=list)
    issues: dict[str, list[str]] = field(default_factory=dict)  # image names by kind of issue

    def name(self, index: int) -> str:
        """Return the name of a readable image."""
        return self.images.names[self.readable[index]]

    def label(self, index: int) -> str:
        """Return the class or classes of a readable image; "" if there are none."""
        if not self.images.classes:
            return ""
        label = self.images.labels[self.readable[index]]
        if not self.images.multi_label:
            return self.images.classes[int(label)]
        return ", ".join(self.images.classes[int(each)] for each in np.nonzero(label)[0])


class _ImageFacts(NamedTuple):
    digest: str
    bits: np.ndarray
    kinds: tuple[str, ...]


def look(images: ImageSet, model: Preprocessing | None = None) -> Seen:
    """Open every image of a set once; `model` is the preprocessing of the model, if it is known."""

    def examine(index: int) -> _ImageFacts | str:
        try:
            image = images.open(index)
            with naming(images.names[index]):
                return _examine(image, model)
        except UnreadableError as error:
            return error.reason

    seen = Seen(images)
    for index, found in enumerate(in_threads(examine, range(len(images)))):
        if isinstance(found, str):
            kind = "missing-image" if found == GONE else "unreadable"
            seen.issues.setdefault(kind, []).append(f"{images.names[index]} ({found})")
            continue
        seen.readable.append(index)
        seen.digests.append(found.digest)
        seen.bits.append(found.bits)
        for kind in found.kinds:
            seen.issues.setdefault(kind, []).append(images.names[index])
    return seen


def _examine(image: ImageContent, model: Preprocessing | None) -> _ImageFacts:
    if model is not None:
        model.pixels(image)  # raises the errors that training would raise
    values = np.asarray(image)
    height, width = values.shape[:2]
    small, large = sorted((height, width))
    tiny = small < TINY
    kinds = {
        "tiny": tiny,
        "small": model is not None and not tiny and small < min(model.height, model.width) / 2,
        "long": large > LONG * small,
        "blank": values.size > 3 and (values == values[0, 0]).all(),
        "animated": getattr(image, "info", {}).get(ANIMATED),
        "unusual-mode": getattr(image, "mode", "RGB") not in USUAL,
    }
    found = tuple(kind for kind, is_so in kinds.items() if is_so)
    return _ImageFacts(digest(image), perceptual(image), found)


def findings(seen: Seen, held_out: Mapping[str, Seen] | None = None) -> list[ImageFinding]:
    """Return the issues of a set, the most severe and most frequent first.

    `held_out` are the "test" and "valid" sets, which it must not overlap with.
    """
    return listed(image_issues(seen, held_out or {}), ISSUE_TYPES)


def image_issues(seen: Seen, held_out: Mapping[str, Seen]) -> dict[str, list[str]]:
    """Return the names of images by kind of issue."""
    found = dict(seen.issues) | _duplicates(seen) | class_issues(seen.images)
    found["other-files"] = [*seen.images.other_files]
    for split, other in held_out.items():
        found |= _overlaps(seen, split, other)
        if unknown := sorted(set(other.images.classes) - set(seen.images.classes)):
            found.setdefault("unknown-class", []).extend(f"{each} ({split})" for each in unknown)
    return found


def listed(issues: Mapping[str, list[str]], types: Mapping[str, IssueType]) -> list[ImageFinding]:
    """Write issues as findings, the most severe and most frequent first."""
    return in_order(
        ImageFinding(kind, *types[kind][:3], count=len(names), examples=tuple(names[:FEW]))
        for kind, names in issues.items()
        if names
    )


def in_order(findings: Iterable[ImageFinding]) -> list[ImageFinding]:
    """Sort findings, the most severe and most frequent first."""
    return sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), -each.count))


def _duplicates(seen: Seen) -> dict[str, list[str]]:
    issues: dict[str, list[str]] = {"duplicate": [], "conflicting-labels": [], "near-duplicate": []}
    copies: set[int] = set()
    for first, *others in repeated(seen.digests).values():
        copies.update(others)
        for index in others:
            issues["duplicate"].append(f"{seen.name(index)} = {seen.name(first)}")
            labels = seen.label(first), seen.label(index)
            if labels[0] != labels[1]:
                issues["conflicting-labels"].append(
                    f"{seen.name(index)} ({labels[1]}) = {seen.name(first)} ({labels[0]})"
                )
    for first, second in alike(seen):
        if not {first, second} & copies:
            issues["near-duplicate"].append(f"{seen.name(second)} ~ {seen.name(first)}")
    return issues


def alike(seen: Seen, limit: int = NEAR) -> list[tuple[int, int]]:
    """Find pairs of readable images whose fingerprints differ in at most `limit` <= 7 bits."""
    if not seen.bits:
        return []
    flat = _featureless(seen)
    return [pair for pair in similar(np.stack(seen.bits), limit) if not flat[pair[0]]]


def _featureless(seen: Seen) -> np.ndarray:
    """Return which images have too few edges to be compared by fingerprint."""
    return np.bitwise_count(np.stack(seen.bits)).sum(axis=1, dtype=int) < 2 * NEAR


def _overlaps(seen: Seen, split: str, other: Seen) -> dict[str, list[str]]:
    exact, near = f"{split}-overlap", f"{split}-near-overlap"
    issues: dict[str, list[str]] = {exact: [], near: []}
    known = {each: index for index, each in reversed(list(enumerate(other.digests)))}
    pairs = {index: known[each] for index, each in enumerate(seen.digests) if each in known}
    issues[exact] = [f"{seen.name(one)} = {other.name(two)}" for one, two in pairs.items()]
    same = set(pairs)
    if not seen.bits or not other.bits:
        return issues
    count, flat = len(seen.bits), _featureless(seen)
    for first, second in similar(np.stack(seen.bits + other.bits), NEAR):
        if first < count <= second and first not in same and not flat[first]:
            same.add(first)
            issues[near].append(f"{seen.name(first)} ~ {other.name(second - count)}")
    return issues


def class_issues(images: ImageSet) -> dict[str, list[str]]:
    """Return the issues of the classes of a set, by kind."""
    issues: dict[str, list[str]] = {}
    if not images.classes:
        return issues
    if images.multi_label:
        numbers = images.labels.sum(axis=0)
        none = np.nonzero(images.labels.sum(axis=1) == 0)[0]
        issues["no-label"] = [images.names[int(index)] for index in none]
    else:
        numbers = np.bincount(images.labels, minlength=len(images.classes))
        if len(images.classes) == 1:
            issues["one-class"] = [images.classes[0]]
    counts = Counter(dict(zip(images.classes, map(int, numbers), strict=True)))
    ordered = [(name, count) for name, count in counts.most_common() if count]
    rarest = counts.most_common()[::-1]
    issues["rare-class"] = [f"{name} ({count})" for name, count in rarest if count < RARE]
    if ordered and ordered[0][1] > UNBALANCED * ordered[-1][1]:
        (most, largest), (least, smallest) = ordered[0], ordered[-1]
        issues["imbalance"] = [f"{most} ({largest:,}) against {least} ({smallest:,})"]
    issues["label-typo"] = [
        f"{rare} ({counts[rare]}) and {common} ({counts[common]})"
        for rank, (common, _) in enumerate(ordered)
        for rare, _ in ordered[rank + 1 :]
        if _may_be_typo(common, rare, counts[rare] / counts[common])
    ]
    return issues


def _may_be_typo(common: str, rare: str, share: float) -> bool:
    """Return whether a class name may be a misspelling of another: similar, and rare."""
    one, other = ("".join(each.casefold().replace("_", "").split()) for each in (common, rare))
    if one == other:
        return True
    if share >= 0.2 or any(char.isdigit() for char in one + other):
        return False  # "room 1" and "room 2"
    if min(len(one), len(other)) < 4:
        return sorted(one) == sorted(other)  # "dog" and "dgo", not "cat" and "bat"
    return SequenceMatcher(None, one, other).ratio() >= ALIKE
