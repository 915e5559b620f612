"""Make images with classes or texts ready for training: checked, divided, with a recipe.

The input is never written: the data folder has tables that name the images where they are.
"""

import csv
import io
import math
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from manyheads.data.checks import image_checks
from manyheads.data.checks.clean import repaired
from manyheads.data.checks.held_out_images import join
from manyheads.data.checks.image_fingerprints import repeated
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.image_file import read_content
from manyheads.data.images.image_set import ImageSet, Preprocessing, labelled
from manyheads.data.text.encoding import is_valid_unicode
from manyheads.errors import DataError
from manyheads.fit import recommendation
from manyheads.own_data.picture_files import Found, Picture, find_pictures
from manyheads.own_data.prepared import Options, Prepared
from manyheads.own_data.speed import FULL, VALIDATIONS, Draft, measure
from manyheads.own_data.text_recipe import vocabulary_size
from manyheads.streams import generator
from manyheads.strict_json import dumps

PARTS = ("train", "val", "test")
LEAST = 3  # images of a class that do not look alike: one for each part
NEAR = 7  # bits of 128: more than a check names, since together on one side nothing is lost
FEW = 50  # images of a class
FEW_TO_JUDGE = 500  # images, below which steps of a run have the same accuracy too often
SEED = 1
SAMPLE, CAPTIONS = 300, 50  # images, or images with texts, by which the speed is measured
START = "cifar10-cct-2-3x2"
SIDE, CAPTION_SIDE = 32, 64  # pixels that these models were made for
EPOCHS = 100  # passes after which more teach little
_DONE = tomllib.loads(files(__package__).joinpath("image_findings.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Divided:
    """The images that are kept, in parts."""

    found: Found
    facts: recommendation.Facts
    parts: Mapping[str, Sequence[Picture]]

    @property
    def ending(self) -> str:
        """Of the tables."""
        return "jsonl" if self.found.captions else "csv"

    def count(self, *parts: str) -> Counter[str]:
        """Count the images of each class."""
        return Counter(label for p in parts for each in self.parts[p] for label in each.labels)

    @property
    def sample(self) -> "Divided":
        """Some images of each part, of classes that are in training: enough to time steps."""
        most = CAPTIONS if self.found.captions else SAMPLE
        some = {
            part: [own[int(n)] for n in evenly_spaced(len(own), most)]
            for part, own in self.parts.items()
            if own
        }
        known = {label for each in some["train"] for label in each.labels}
        valid = [each for each in some["val"] if known.issuperset(each.labels)]
        return replace(self, parts=some | {"val": valid or some["train"][:1], "test": []})

    def files(self) -> dict[str, str]:
        """Write a table of each part."""
        return {f"{name}.{self.ending}": _table(own) for name, own in self.parts.items() if own}


def _table(pictures: Sequence[Picture]) -> str:
    """Name images by their absolute paths, with their classes or their texts by language."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    if not pictures[0].texts:
        rows.writerow(["image", "label"])
    for each in pictures:
        path = str(each.path.absolute())
        if each.texts:
            codes = dict.fromkeys(code for code, _ in each.texts)
            texts = {code: [own for of, own in each.texts if of == code] for code in codes}
            text.write(f"{dumps({'image': path} | texts)}\n")
        else:
            rows.writerow([path, ";".join(each.labels)])
    return text.getvalue()


def prepare_images(path: Path, out: Path, options: Options) -> Prepared:
    """Find, check and divide images, and write a recipe for a classifier or a captioner.

    Raises:
        DataError: there are no images, no classes or texts, or too few.
        UsageError: no such column.
    """
    found = find_pictures(path, options.columns)
    odd = [ascii(str(e.path)) for e in found.pictures if not is_valid_unicode(str(e.path))]
    found.note("invalid-utf8", odd, "left out: the name of the file is not UTF-8")
    found.pictures = [each for each in found.pictures if is_valid_unicode(str(each.path))]
    started = time.perf_counter()
    divided = _divide(found)
    reading = time.perf_counter() - started
    recipe, expect = _recipe(divided, out, options, reading)
    counts = divided.count(*PARTS).most_common()
    kind = ", ".join(f"{name} {count:,}" for name, count in counts[:8])
    kind = f", {len(counts)} classes ({kind}{', ...' * (len(counts) > 8)})" if counts else ""
    used = sum(map(len, divided.parts.values()))
    about = f"{used:,} of them are used{kind}; {divided.facts.side} pixels is their median side"
    seen, findings, files = [found.seen, about], found.findings, divided.files()
    return Prepared(seen=seen, findings=findings, recipe=recipe, files=files, expect=expect)


# --- Checking and dividing ----------------------------------------------------------------------


def _divide(found: Found) -> Divided:
    """Open every image once, leave out what teaches nothing, and divide the rest."""
    if found.captions:
        for number, each in enumerate(found.pictures):
            texts = dict.fromkeys((code, repaired(text, code)) for code, text in each.texts)
            found.pictures[number] = replace(each, texts=tuple(own for own in texts if own[1]))
    images = _images(found.pictures, found)
    facts = recommendation.look(images)
    preprocessing = Preprocessing(height=SIDE, width=SIDE)
    if facts.channels not in (1, 3):
        preprocessing = replace(preprocessing, mode="bands", num_channels=facts.channels)
    seen = image_checks.look(images, preprocessing)
    used = _without_copies(found, seen)
    pictures, numbers = list(used.values()), {n: index for index, n in enumerate(used)}
    near = [(seen.readable[a], seen.readable[b]) for a, b in image_checks.alike(seen, NEAR)]
    pairs = [(numbers[a], numbers[b]) for a, b in near if a in numbers and b in numbers]
    groups = join(len(pictures), [*pairs, *_same_texts(pictures)])
    sizes = Counter(_class(pictures[group[0]], found) for group in groups)
    few = [name for name, size in sizes.items() if size < LEAST]
    groups = [group for group in groups if _class(pictures[group[0]], found) not in few]
    rest = [pictures[n] for group in groups for n in group]
    issues = dict(seen.issues)
    issues["near-duplicate"] = [f"{pictures[b].path} ~ {pictures[a].path}" for a, b in pairs]
    issues["few-images"] = [f"{name or 'all'} ({sizes[name]})" for name in few]
    if rest and not found.captions:
        issues |= image_checks.class_issues(_images(rest, found))
    for kind, done in _DONE.items():
        found.note(kind, issues.get(kind, ()), done.format(LEAST=LEAST, checks=image_checks))
    classes = {label for each in rest for label in each.labels}
    if not rest or len(classes) == 1:
        lost = ", ".join(f"{each.count:,} {each.kind}" for each in found.findings)
        raise DataError(
            f"{found.seen}: left are {len(rest)} images, {len(classes)} of the classes "
            f"({lost or 'none was left out'}). A classifier needs at least two classes of {LEAST} "
            f"images that do not look alike; {FEW} of each are better."
        )
    return Divided(found, facts, _split(groups, pictures, found))


def _images(pictures: Sequence[Picture], found: Found) -> ImageSet:
    paths = [each.path for each in pictures]
    several = found.multi_label
    labels = [list(each.labels) if several else each.labels[0] for each in pictures if each.labels]
    return labelled(
        list(map(str, paths)),
        labels or None,
        ";" if several else None,
        read=lambda index: read_content(paths[index]),
        origin=found.seen,
        files=paths,
    )


def _without_copies(found: Found, seen: image_checks.Seen) -> dict[int, Picture]:
    """Return the images to keep by number: of copies the first, with the texts of all."""
    names = {name for kind in ("blank", "tiny") for name in seen.issues.get(kind, ())}
    used = {n: found.pictures[n] for n in seen.readable if str(found.pictures[n].path) not in names}
    copies, conflicts = list[str](), list[str]()
    for equal in repeated(seen.digests).values():
        same = [n for each in equal if (n := seen.readable[each]) in used]
        first, others = same[:1], same[1:]
        names_of = [f"{used[n].path} = {used[first[0]].path}" for n in others]
        if len({used[n].labels for n in same}) > 1:
            conflicts += names_of
            others = same
        elif others:
            copies += names_of
            texts = dict.fromkeys(text for n in same for text in used[n].texts)
            used[first[0]] = replace(used[first[0]], texts=tuple(texts))
        for n in others:
            del used[n]
    seen.issues |= {"duplicate": copies, "conflicting-labels": conflicts}
    return used


def _same_texts(pictures: Sequence[Picture]) -> Iterator[tuple[int, int]]:
    """Yield pairs of images with the same texts, which tell neither from the other."""
    first: dict[frozenset[tuple[str, str]], int] = {}
    for index, each in enumerate(pictures):
        if each.texts:
            yield first.setdefault(frozenset(each.texts), index), index


def _class(picture: Picture, found: Found) -> str:
    """Return what every part should have some images of."""
    return "" if found.captions or found.multi_label else picture.labels[0]


def _split(
    groups: Sequence[Sequence[int]], pictures: Sequence[Picture], found: Found
) -> dict[str, list[Picture]]:
    """Divide groups of images class by class; parts that the files name stay as they are."""
    total = sum(map(len, groups))
    share = min(0.15, max(0.1, 100 / total), 5000 / total)
    parts: dict[str, list[Picture]] = {part: [] for part in PARTS}
    waiting: dict[str, list[Sequence[int]]] = {}
    for group in groups:
        splits = {pictures[n].split for n in group}
        if held := [part for part in ("test", "val") if part in splits]:
            parts[held[0]] += [pictures[n] for n in group]
        else:
            waiting.setdefault(_class(pictures[group[0]], found), []).append(group)
    named = {part for part, own in parts.items() if own}
    for name, own in sorted(waiting.items()):
        order = generator(SEED, f"hold-out {name}").permutation(len(own))
        left = sorted((own[n] for n in order), key=len, reverse=True)  # the largest are trained on
        wanted = max(1, round(share * sum(map(len, own))))
        for part in ("val", "test"):
            taken = 0
            while part not in named and taken < wanted and len(left) > 1:
                parts[part] += [pictures[n] for n in left[-1]]
                taken += len(left.pop())
        parts["train"] += [pictures[n] for group in left for n in group]
    return parts


# --- The recipe ---------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Draft(Draft):
    data: Divided
    start: str | None
    batch: int
    side: int

    def plan(self, minutes: float, reading: float) -> None:
        """Choose steps: as many as the minutes allow, and no more than the images are worth."""
        train, val = (len(self.data.parts[part]) for part in ("train", "val"))
        worth = max(200, EPOCHS * train // self.batch)
        if self.speed is None:
            self.steps, self.every = worth, worth // VALIDATIONS
            return
        sampled = len(self.data.sample.parts["val"])
        validation = VALIDATIONS * self.speed.validation * val / sampled
        possible = int((60 * minutes * FULL - 2 * reading - validation) / self.speed.step)
        steps = min(max(20, possible), worth)
        self.every = max(10, steps // VALIDATIONS)
        self.steps = self.every * max(1, steps // self.every)
        self.minutes = (self.steps * self.speed.step + validation + 2 * reading) / FULL / 60

    def write(self, root: str) -> str:
        """Write the recipe."""
        divided, found, start = self.data, self.data.found, self.start
        parts, captions = divided.parts, found.captions
        channels = 0 if divided.facts.channels in (1, 3) else divided.facts.channels
        codes = dict.fromkeys(c for own in parts.values() for e in own for c, _ in e.texts)
        counts = divided.count("train").values()
        lines = self.fill(
            "image_recipe.template",
            root=dumps(root),
            task="caption" if captions else "classify",
            captioner=captions and start is None,
            classifier=not captions and start is None,
            languages="\n".join(f"{dumps(code)} = [{dumps(code)}]" for code in codes),
            vocabulary=vocabulary_size(text for each in parts["train"] for _, text in each.texts),
            start=start and dumps(start),
            shipped=start == START,
            named=start not in (None, START),
            bands=channels if start in (None, START) else 0,  # a named model keeps its own
            shift=self.side // 16,
            trivial=not captions and not channels,
            metric="chrf" if captions else "map" if found.multi_label else "accuracy",
            few=not captions and not found.multi_label and len(parts["val"]) < FEW_TO_JUDGE,
            unbalanced=counts and max(counts) > image_checks.UNBALANCED * min(counts),
        )
        return "\n".join([*lines, ""])

    def expect(self, minutes: float) -> list[str]:
        """Say what so many minutes of training can teach."""
        divided, captions = self.data, self.data.found.captions
        train, val = len(divided.parts["train"]), len(divided.parts["val"])
        passes, counts = self.steps * self.batch / train, divided.count(*PARTS)
        (most, count), *_ = divided.count("val").most_common() or [("", 0)]
        few = sorted(name for name, number in counts.items() if number < FEW)
        return self.fill(
            "image_expectations.template",
            passes=passes,
            hurried=self.speed and passes < 20 and self.minutes > 0.5 * minutes,
            single_label=not captions and not divided.found.multi_label,
            most=most,
            share=100 * count / val,
            points=196 * math.sqrt(0.25 / val),
            few=len(few),
            classes=len(counts),
            least=FEW,
            shown=", ".join(few[:5]) + ", ..." * (len(few) > 5),
            larger=not captions and divided.facts.side >= 4 * self.side,
        )


def _recipe(
    divided: Divided, out: Path, options: Options, reading: float
) -> tuple[str, Sequence[str]]:
    """Choose size, batch and steps by what a few real steps take; say what to expect."""
    train, captions = divided.parts["train"], divided.found.captions
    seen = divided.facts.channels in (1, 3) and not captions  # what the shipped model can see
    draft = _Draft(
        data=divided,
        out=out,
        start=options.start or (START if seen else None),
        batch=32 if len(train) < 2000 else 64 if len(train) < 20_000 else 128,
        side=CAPTION_SIDE if captions else SIDE,
    )
    few = divided.sample
    draft.speed = measure(replace(draft, data=few).write("{root}"), few.files(), options.hardware)
    draft.plan(options.minutes, reading)
    return draft.write(str(out.absolute())), draft.expect(options.minutes)
