"""Check labelled pictures: every one is opened once; findings name files and say what to do."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from manyheads.data.damage import SEVERITIES, Severity
from manyheads.data.fingerprints import digest, perceptual, repeated, similar
from manyheads.data.images import ImageSet, Preprocessing, spread
from manyheads.data.pictures import ANIMATED, Picture, naming
from manyheads.errors import UnreadableError

FEW = 5  # names that a finding lists
TINY = 8  # pixels
NEAR = 4  # bits of 128 in which near duplicates differ
LONG = 4  # times as long as wide
RARE = 10  # pictures of a class
UNBALANCED = 10  # times as many of the most frequent class as of the rarest
ALIKE = 0.8  # of two class names


class Kind(NamedTuple):
    """A kind of damage: how bad, what it is, and what to do."""

    severity: Severity
    what: str
    remedy: str


KINDS = {
    "unreadable": Kind(
        "error",
        "pictures that cannot be read: empty, cut off, of other channels, or no pictures",
        'Copy them again, or remove them; data.bad = "skip" trains without them.',
    ),
    "test-overlap": Kind(
        "error",
        "pictures that are also in the test data, pixel by pixel",
        "Remove them here: what was seen in training says nothing in a test.",
    ),
    "valid-overlap": Kind(
        "error",
        "pictures that are also in the validation data, pixel by pixel",
        "Remove them here, or early stopping goes by what was learned by heart.",
    ),
    "test-near-overlap": Kind(
        "warning",
        "pictures that look like one of the test data",
        "Look at these pairs; remove crops, copies and other frames of the same film here.",
    ),
    "valid-near-overlap": Kind(
        "warning",
        "pictures that look like one of the validation data",
        "Look at these pairs; remove crops, copies and other frames of the same film here.",
    ),
    "conflicting-labels": Kind(
        "error",
        "equal pictures with different labels",
        "Decide on one label; if both are right, list both and set data.multi_label = true.",
    ),
    "duplicate": Kind(
        "warning",
        "pictures that occur before, pixel by pixel",
        "Remove the copies: they weigh double, and may end up on both sides of a split.",
    ),
    "near-duplicate": Kind(
        "warning",
        "pictures that look like one before",
        "Look at these pairs. Keep one of each, or split by origin, so that copies of a validation "
        "picture are not trained on.",
    ),
    "one-class": Kind(
        "error",
        "there is one class only",
        "A classifier needs pictures of what a thing is not, too: add a class.",
    ),
    "rare-class": Kind(
        "warning",
        f"classes with fewer than {RARE} pictures",
        "Collect more, or join them with others; what is measured of them is mostly luck.",
    ),
    "imbalance": Kind(
        "warning",
        f"the most frequent class has over {UNBALANCED} times the pictures of the rarest",
        'Set train.class_weights = "balanced", and look at recall by class, not at accuracy.',
    ),
    "label-typo": Kind(
        "warning",
        "class names that may be one class written in two ways",
        "Give them one name: case, spaces and spelling make classes of their own.",
    ),
    "unknown-class": Kind(
        "error",
        "classes that the training data do not have",
        "Rename them as in training, or add training pictures of them.",
    ),
    "no-label": Kind(
        "note",
        "pictures that none of the classes applies to",
        "Right, if that is so; else label them.",
    ),
    "tiny": Kind(
        "warning",
        f"pictures with a side below {TINY} pixels",
        "They are enlarged, and show next to nothing: remove them.",
    ),
    "small": Kind(
        "note",
        "pictures less than half as large as the model's input",
        "They are enlarged. If most are, make image.height and image.width smaller: it is faster.",
    ),
    "long": Kind(
        "note",
        f"pictures over {LONG} times as long as wide",
        "Only their middle is seen: cut them into pieces, or make image.width fit.",
    ),
    "blank": Kind(
        "warning",
        "pictures of one colour",
        "There is nothing to see in them: remove them.",
    ),
    "animated": Kind(
        "note",
        "pictures that move",
        "Only the first frame is seen: save the frame that shows the class.",
    ),
}


@dataclass(frozen=True, slots=True)
class PictureFinding:
    """One kind of damage found in a set: how often, where, and what to do."""

    kind: str
    severity: Severity
    what: str
    remedy: str
    count: int
    examples: tuple[str, ...]  # the first few


@dataclass
class Seen:
    """What one look at each picture leaves: fingerprints and oddities."""

    images: ImageSet
    readable: list[int] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)  # of the readable ones
    bits: list[np.ndarray] = field(default_factory=list)
    unlike: dict[str, list[str]] = field(default_factory=dict)  # names by kind

    def name(self, place: int) -> str:
        """Name a readable picture."""
        return self.images.names[self.readable[place]]

    def label(self, place: int) -> str:
        """Say what class or classes a readable picture has, "" without any."""
        if not self.images.classes:
            return ""
        label = self.images.labels[self.readable[place]]
        if not self.images.multi_label:
            return self.images.classes[int(label)]
        return ", ".join(self.images.classes[int(each)] for each in np.nonzero(label)[0])


class _Look(NamedTuple):
    digest: str
    bits: np.ndarray
    kinds: tuple[str, ...]


def look(images: ImageSet, model: Preprocessing | None = None, *, threads: int = 1) -> Seen:
    """Open every picture of a set once.

    Args:
        images: the set.
        model: what the model sees of a picture, if it is known.
        threads: pictures that are decoded at a time.
    """

    def examine(index: int) -> _Look | str:
        try:
            picture = images.open(index)
            with naming(images.names[index]):
                return _examine(picture, model)
        except UnreadableError as error:
            return error.reason

    seen = Seen(images)
    for index, found in enumerate(spread(examine, range(len(images)), threads)):
        if isinstance(found, str):
            seen.unlike.setdefault("unreadable", []).append(f"{images.names[index]} ({found})")
            continue
        seen.readable.append(index)
        seen.digests.append(found.digest)
        seen.bits.append(found.bits)
        for kind in found.kinds:
            seen.unlike.setdefault(kind, []).append(images.names[index])
    return seen


def _examine(picture: Picture, model: Preprocessing | None) -> _Look:
    if model is not None:
        model.pixels(picture)  # raises what training would stumble over
    values = np.asarray(picture)
    height, width = values.shape[:2]
    small, large = sorted((height, width))
    kinds = []
    if small < TINY:
        kinds.append("tiny")
    elif model is not None and small < min(model.height, model.width) / 2:
        kinds.append("small")
    if large > LONG * small:
        kinds.append("long")
    if (values == values[0, 0]).all() and values.size > 3:
        kinds.append("blank")
    if getattr(picture, "info", {}).get(ANIMATED):
        kinds.append("animated")
    return _Look(digest(picture), perceptual(picture), tuple(kinds))


def findings(seen: Seen, held_out: Mapping[str, Seen] | None = None) -> list[PictureFinding]:
    """Say what is wrong with a set, the worst and most frequent first.

    Args:
        seen: the set.
        held_out: "test" and "valid", which it must not overlap with.
    """
    found = dict(seen.unlike) | _duplicates(seen) | _classes(seen.images)
    for split, other in (held_out or {}).items():
        found |= _overlaps(seen, split, other)
        unknown = sorted(set(other.images.classes) - set(seen.images.classes))
        if unknown:
            found.setdefault("unknown-class", []).extend(f"{each} ({split})" for each in unknown)
    listed = [
        PictureFinding(
            kind,
            KINDS[kind].severity,
            KINDS[kind].what,
            KINDS[kind].remedy,
            len(names),
            tuple(names[:FEW]),
        )
        for kind, names in found.items()
        if names
    ]
    return sorted(listed, key=lambda each: (SEVERITIES.index(each.severity), -each.count))


def _duplicates(seen: Seen) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"duplicate": [], "conflicting-labels": [], "near-duplicate": []}
    copies: set[int] = set()
    for places in repeated(seen.digests).values():
        copies.update(places[1:])
        for place in places[1:]:
            found["duplicate"].append(f"{seen.name(place)} = {seen.name(places[0])}")
            labels = seen.label(places[0]), seen.label(place)
            if labels[0] != labels[1]:
                found["conflicting-labels"].append(
                    f"{seen.name(place)} ({labels[1]}) = {seen.name(places[0])} ({labels[0]})"
                )
    if seen.bits:
        flat = _featureless(seen)
        for first, second in similar(np.stack(seen.bits), NEAR):
            if not {first, second} & copies and not flat[first]:
                found["near-duplicate"].append(f"{seen.name(second)} ~ {seen.name(first)}")
    return found


def _featureless(seen: Seen) -> np.ndarray:
    """Say which fingerprints show too little to compare: hardly an edge."""
    return np.bitwise_count(np.stack(seen.bits)).sum(axis=1, dtype=int) < 2 * NEAR


def _overlaps(seen: Seen, split: str, other: Seen) -> dict[str, list[str]]:
    exact, near = f"{split}-overlap", f"{split}-near-overlap"
    found: dict[str, list[str]] = {exact: [], near: []}
    theirs = {each: place for place, each in reversed(list(enumerate(other.digests)))}
    same: set[int] = set()
    for place, each in enumerate(seen.digests):
        if each in theirs:
            same.add(place)
            found[exact].append(f"{seen.name(place)} = {other.name(theirs[each])}")
    if not seen.bits or not other.bits:
        return found
    count, flat = len(seen.bits), _featureless(seen)
    for first, second in similar(np.stack(seen.bits + other.bits), NEAR):
        if first < count <= second and first not in same and not flat[first]:
            same.add(first)
            found[near].append(f"{seen.name(first)} ~ {other.name(second - count)}")
    return found


def _classes(images: ImageSet) -> dict[str, list[str]]:
    """Look at the classes' names and sizes."""
    found: dict[str, list[str]] = {}
    if not images.classes:
        return found
    if images.multi_label:
        counts = Counter(
            dict(zip(images.classes, images.labels.sum(axis=0).astype(int), strict=True))
        )
        none = np.nonzero(images.labels.sum(axis=1) == 0)[0]
        found["no-label"] = [images.names[int(index)] for index in none]
    else:
        numbers = np.bincount(images.labels, minlength=len(images.classes))
        counts = Counter(dict(zip(images.classes, map(int, numbers), strict=True)))
        if len(images.classes) == 1:
            found["one-class"] = [images.classes[0]]
    ordered = [(name, count) for name, count in counts.most_common() if count]
    found["rare-class"] = [
        f"{name} ({count})" for name, count in counts.most_common()[::-1] if count < RARE
    ]
    if ordered and ordered[0][1] > UNBALANCED * ordered[-1][1]:
        (most, largest), (least, smallest) = ordered[0], ordered[-1]
        found["imbalance"] = [f"{most} ({largest:,}) against {least} ({smallest:,})"]
    found["label-typo"] = [
        f"{rare} ({counts[rare]}) and {common} ({counts[common]})"
        for place, (common, _) in enumerate(ordered)
        for rare, _ in ordered[place + 1 :]
        if _may_be_one(common, rare, counts[rare] / counts[common])
    ]
    return found


def _may_be_one(common: str, rare: str, share: float) -> bool:
    """Say whether a class may be another with a mistake: the same letters, or few of it."""
    one, other = ("".join(each.casefold().replace("_", "").split()) for each in (common, rare))
    if one == other:
        return True
    if share >= 0.2 or any(char.isdigit() for char in one + other):
        return False  # "room 1" and "room 2"
    if min(len(one), len(other)) < 4:
        return sorted(one) == sorted(other)  # "dog" and "dgo", not "cat" and "bat"
    return SequenceMatcher(None, one, other).ratio() >= ALIKE
