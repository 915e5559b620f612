"""Make images with classes or texts ready for training: checked, divided, with a recipe.

The input is never written: the data folder has tables that name the images where they are.
"""

import csv
import io
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from manyheads.data.checks.clean import repaired
from manyheads.data.checks.image_checks import RARE, TINY, UNBALANCED, image_issues, look
from manyheads.data.checks.image_fingerprints import repeated, similar
from manyheads.data.checks.separation import join
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.image_file import read_content
from manyheads.data.images.image_set import ImageSet, Preprocessing, labelled
from manyheads.data.text.language_guess import guess
from manyheads.errors import DataError
from manyheads.fit import recommendation
from manyheads.own_data.columns import LANGUAGES
from manyheads.own_data.picture_files import Found, Picture, find_pictures
from manyheads.own_data.prepared import Options, Prepared, recipe_path
from manyheads.own_data.speed import Speed, measure
from manyheads.own_data.text_recipe import vocabulary_size
from manyheads.streams import generator
from manyheads.strict_json import dumps

PARTS = ("train", "valid", "test")
LEAST = 3  # images of a class that do not look alike: one to learn from, one for each other part
NEAR = 7  # bits of 128: more than a check names, since together on one side nothing is lost
SEED = 1
SAMPLE = 300  # images by which the speed is measured
START = "cifar10-cct-2-3x2"
EPOCHS = 100  # passes after which more teach nothing new
VALIDATIONS = 10
FULL = 0.9  # of the minutes
SIDES = (32, 64, 96, 128)
_DONE = {
    "unreadable": "left out",
    "missing-image": "left out",
    "blank": "left out: a single colour shows nothing",
    "tiny": f"left out: a side has fewer than {TINY} pixels",
    "long": "kept: the model sees their middle",
    "animated": "kept: the first frame counts",
    "unusual-mode": "kept: read as RGB",
    "duplicate": "left out: the same pixels as an earlier image, which is kept",
    "conflicting-labels": "left out, all of them: the same pixels with different classes",
    "near-duplicate": "kept, all on one side of the split",
    "rare-class": f"kept: under {RARE} images, so what is measured of them is luck",
    "imbalance": "kept: rare classes weigh as much as frequent ones in training",
    "label-typo": "kept apart: rename them if they are one class",
    "few-images": f"left out: fewer than {LEAST} different images, so nothing to learn or measure",
}
_LOST = ("blank", "tiny")


@dataclass(frozen=True)
class Divided:
    """Images that are kept, and the part of each."""

    pictures: Sequence[Picture]
    parts: Mapping[str, Sequence[Picture]]
    found: Found
    facts: recommendation.Facts

    @property
    def classes(self) -> Counter[str]:
        """Counts of the images of each class."""
        return Counter(label for each in self.pictures for label in each.labels)

    @property
    def languages(self) -> list[str]:
        """Languages of the texts."""
        return list(dict.fromkeys(code for each in self.pictures for code, _ in each.texts))


def prepare_images(path: Path, out: Path, options: Options) -> Prepared:
    """Find, check and divide images, and write a recipe for a classifier or a captioner.

    Raises:
        DataError: there are no images, no classes or texts, or too few.
        UsageError: no such column.
    """
    found = find_pictures(path, options.columns, _language)
    started = time.perf_counter()
    divided = _divide(found)
    reading = (time.perf_counter() - started) / len(found.pictures)
    files = {name: _file(part, found) for name, part in _names(divided).items()}
    recipe, expect = _recipe(divided, files, out, options, reading)
    count = f"{len(divided.pictures):,} of them are used, "
    facts = divided.facts
    if found.captions:
        kind = f"with texts in {', '.join(divided.languages)}"
    else:
        most, least = divided.classes.most_common()[0], divided.classes.most_common()[-1]
        kind = f"{len(divided.classes)} classes, from {most[0]} ({most[1]:,}) to {least[0]} ({least[1]:,})"
    about = f"{count}{kind}; their shorter side has {facts.side} pixels (median)"
    return Prepared(
        seen=[found.seen, about],
        findings=found.findings,
        recipe=recipe,
        files={
            f"{name}.{'jsonl' if found.captions else 'csv'}": text for name, text in files.items()
        },
        expect=expect,
    )


def _language(text: str) -> str:
    """Guess the code of a language; English if nothing speaks for any."""
    (best, confidence), *_ = guess(text, LANGUAGES)
    return best if confidence else "en"


# --- Checking -----------------------------------------------------------------------------------


def _divide(found: Found) -> Divided:
    """Open every image once, leave out what teaches nothing, and divide the rest."""
    pictures = found.pictures
    if found.captions:
        pictures = [_with_clean_texts(each) for each in pictures]
    images = _images(pictures, found)
    facts = recommendation.look(images)
    bands = facts.channels not in (1, 3)
    model = Preprocessing(
        height=SIDES[0],
        width=SIDES[0],
        mode="bands" if bands else "RGB",
        num_channels=facts.channels if bands else 0,
    )
    seen = look(images, model, threads=torch.get_num_threads())
    issues = image_issues(seen, {})
    lost = {name for kind in _LOST for name in issues.get(kind, ())}
    merged = dict(enumerate(pictures))
    drop = {n for n in range(len(pictures)) if images.names[n] in lost} | {
        *range(len(pictures))
    } - {*seen.readable}
    for first, *others in repeated(seen.digests).values():
        same = [seen.readable[n] for n in (first, *others)]
        drop.update(same[1:])
        if len({pictures[n].labels for n in same}) > 1:
            drop.add(same[0])
        texts = dict.fromkeys(text for n in same for text in pictures[n].texts)
        merged[same[0]] = replace(pictures[same[0]], texts=tuple(texts))
    near = (
        [(seen.readable[a], seen.readable[b]) for a, b in similar(np.stack(seen.bits), NEAR)]
        if seen.bits
        else []
    )
    kept = [n for n in range(len(pictures)) if n not in drop]
    place = {n: index for index, n in enumerate(kept)}
    pairs = [(place[a], place[b]) for a, b in near if a in place and b in place]
    used = [merged[n] for n in kept]
    groups = join(len(used), [*pairs, *_same_texts(used)])
    groups, few = _without_few(groups, used, found)
    issues["near-duplicate"] = [f"{used[b].path} ~ {used[a].path}" for a, b in pairs]
    issues["few-images"] = few
    del issues["other-files"]
    for kind, names in issues.items():
        if kind in _DONE:
            found.note(kind, names, _DONE[kind])
    labels = {label for group in groups for n in group for label in used[n].labels}
    if not groups or (len(labels) < 2 and not found.captions):
        rest = f"{len(labels)} classes" if not found.captions else "no images"
        raise DataError(
            f"{found.seen}: {rest} left. A classifier needs at least two classes with {LEAST} different images each, more "
            f"than {10 * LEAST} for anything to be learned; what was left out: {_why(found)}"
        )
    parts = _split(groups, used, found)
    return Divided([p for part in parts.values() for p in part], parts, found, facts)


def _why(found: Found) -> str:
    return ", ".join(f"{f.count:,} {f.kind}" for f in found.findings) or "nothing"


def _images(pictures: Sequence[Picture], found: Found) -> ImageSet:
    paths = [each.path for each in pictures]
    values = (
        [list(each.labels) if found.multi_label else each.labels[0] for each in pictures]
        if not found.captions
        else None
    )
    return labelled(
        list(map(str, paths)),
        values,
        ";" if found.multi_label else None,
        read=lambda index: read_content(paths[index]),
        origin=found.seen,
        files=paths,
    )


def _with_clean_texts(picture: Picture) -> Picture:
    texts = ((code, repaired(text, code)) for code, text in picture.texts)
    return replace(picture, texts=tuple(dict.fromkeys(each for each in texts if each[1])))


def _same_texts(pictures: Sequence[Picture]) -> Iterator[tuple[int, int]]:
    """Yield pairs of images with the same texts: told apart by nothing."""
    first: dict[frozenset[tuple[str, str]], int] = {}
    for index, each in enumerate(pictures):
        if each.texts:
            yield first.setdefault(frozenset(each.texts), index), index


def _stratum(picture: Picture, found: Found) -> str:
    return "" if found.captions or found.multi_label else picture.labels[0]


def _without_few(
    groups: list[list[int]], pictures: Sequence[Picture], found: Found
) -> tuple[list[list[int]], list[str]]:
    """Leave out classes that cannot be in every part."""
    counts = Counter(_stratum(pictures[group[0]], found) for group in groups)
    few = {name: count for name, count in counts.items() if count < LEAST}
    kept = [g for g in groups if _stratum(pictures[g[0]], found) not in few]
    return kept, [f"{name} ({count})" for name, count in few.items()]


def _split(
    groups: Sequence[Sequence[int]], pictures: Sequence[Picture], found: Found
) -> dict[str, list[Picture]]:
    """Divide groups into parts, class by class; what the files say of parts is kept."""
    total = sum(map(len, groups))
    share = min(0.15, max(0.1, 100 / total), 5000 / total)
    parts: dict[str, list[Picture]] = {part: [] for part in PARTS}
    given = {each.split for each in pictures} - {""}
    waiting: dict[str, list[Sequence[int]]] = {}
    for group in groups:
        said = {pictures[n].split for n in group} - {""}
        part = next((each for each in ("test", "valid") if each in said), "")
        if part:
            parts[part] += [pictures[n] for n in group]
        else:
            waiting.setdefault(_stratum(pictures[group[0]], found), []).append(group)
    for stratum, own in sorted(waiting.items()):
        order = generator(SEED, f"hold-out {stratum}").permutation(len(own))
        shuffled = sorted((own[n] for n in order), key=len)  # large groups are for training
        wanted = max(1, round(share * sum(map(len, own))))
        shuffled = [own[n] for n in order]
        for part in ("test", "valid"):
            taken = 0
            while part not in given and taken < wanted and len(shuffled) > 1:
                group = shuffled.pop()
                taken += len(group)
                parts[part] += [pictures[n] for n in group]
        parts["train"] += [pictures[n] for group in shuffled for n in group]
    return parts


# --- Files --------------------------------------------------------------------------------------


def _names(divided: Divided) -> dict[str, Sequence[Picture]]:
    return {part: divided.parts[part] for part in PARTS if divided.parts[part]}


def _file(pictures: Sequence[Picture], found: Found) -> str:
    """Write a table of images by their absolute paths."""
    text = io.StringIO()
    if found.captions:
        for each in pictures:
            row: dict[str, object] = {"image": str(each.path.absolute())}
            for code, caption in each.texts:
                row[code] = [*row.get(code, []), caption]  # type: ignore[misc]
            text.write(f"{dumps(row)}\n")
        return text.getvalue()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["image", "label"])
    writer.writerows([str(each.path.absolute()), ";".join(each.labels)] for each in pictures)
    return text.getvalue()


def _some(pictures: Sequence[Picture], count: int) -> list[Picture]:
    return [pictures[int(n)] for n in evenly_spaced(len(pictures), count)]


# --- The recipe ---------------------------------------------------------------------------------

Line = tuple[str, str]  # of the recipe, and why


def _recipe(
    divided: Divided, files: Mapping[str, str], out: Path, options: Options, reading: float
) -> tuple[str, list[str]]:
    """Choose size, batch and steps by what a few real steps take; say what to expect."""
    train, valid = divided.parts["train"], divided.parts["valid"]
    batch = 32 if len(train) < 2000 else 64 if len(train) < 20_000 else 128
    some = {"train": _some(train, SAMPLE), "valid": _some(valid, SAMPLE // 3)}
    tables = {
        f"{part}.{'jsonl' if divided.found.captions else 'csv'}": _file(each, divided.found)
        for part, each in some.items()
    }
    few = replace(divided, parts={**divided.parts, **some})

    def timed(side: int) -> Speed | None:
        text = _write(few, options, "{root}", side, batch, 1000, 1000, None, out)
        return measure(text, tables, options.hardware)

    side = SIDES[1] if divided.found.captions else SIDES[0]
    speed = timed(side)
    seconds = 60 * options.minutes * FULL - 2 * reading * len(divided.pictures)
    steps, every, minutes = 1000, 100, math.nan
    if speed is not None:
        validation = 2 * VALIDATIONS * speed.validation * len(valid) / len(some["valid"])
        possible = max(20, int((seconds - validation) / speed.step))
        steps = min(possible, max(200, EPOCHS * len(train) // batch))
        every = max(10, steps // VALIDATIONS)
        steps = every * max(1, steps // every)
        spent = steps * speed.step + validation + 2 * reading * len(divided.pictures)
        minutes = spent / FULL / 60
    text = _write(
        divided, options, str(out.absolute()), side, batch, steps, every, speed, out, minutes
    )
    return text, _expect(divided, options, side, batch, steps, minutes, speed)


def _write(
    divided: Divided,
    options: Options,
    root: str,
    side: int,
    batch: int,
    steps: int,
    every: int,
    speed: Speed | None,
    out: Path,
    minutes: float = math.nan,
) -> str:
    found, facts = divided.found, divided.facts
    train, valid, test = (divided.parts[part] for part in PARTS)
    captions, ending = found.captions, "jsonl" if found.captions else "csv"
    counts = Counter(label for each in train for label in each.labels)
    metric = "chrf" if captions else "map" if found.multi_label else "accuracy"
    start = options.start or (None if captions or facts.channels not in (1, 3) else START)
    timed = "not timed: no such machine here"
    if speed is not None:
        timed = f"about {minutes:.0f} minutes at {speed.units:,.0f} images a second, measured here"
    lines: list[Line] = [
        (f"# {len(train):,} images to train on, from {found.seen}", ""),
        ("#", ""),
        (f"#   manyheads train {recipe_path(out)}", ""),
        ("", ""),
        (f'task = "{"caption" if captions else "classify"}"', ""),
        ("seed = 1", "the same again; another number shows how much is luck"),
        ("", ""),
        ("[data]", ""),
        (f"root = {dumps(root)}", "change it when you move the folder; the images stay in place"),
        (f'train = "train.{ending}"', ""),
        (f'valid = "valid.{ending}"', f"{len(valid):,}: choose the weights to keep"),
    ]
    if test:
        lines.append((f'test = "test.{ending}"', f"{len(test):,}: for the last word, once"))
    if found.multi_label:
        lines.append(("multi_label = true", "an image may have several classes"))
    lines.append(('on_error = "skip"', "an image that is lost later is left out, and listed"))
    if captions:
        lines += [("", ""), ("[data.texts]", "the column of each language")]
        lines += [(f"{dumps(code)} = [{dumps(code)}]", "") for code in divided.languages]
    if start is not None:
        why = (
            "chosen" if options.start else "it has seen 45,000 photos: few images teach too little"
        )
        lines += [("", ""), ("[start]", ""), (f"model = {dumps(start)}", why)]
    if start is None or start == START:
        seen = "pixels of each side: more show finer detail, and cost time by the square"
        lines += [("", ""), ("[image]", ""), (f"height = {side}", seen), (f"width = {side}", "")]
        if facts.channels not in (1, 3):
            lines += [
                ('mode = "bands"', ""),
                (f"num_channels = {facts.channels}", "as in the files"),
            ]
    lines += [("", ""), ("[augment]", "new variants of an image each time it is seen")]
    lines.append((f"shift = {max(2, side // 16)}", "pixels"))
    if not captions:
        lines.append(("flip = true", "false where left and right differ: letters, arrows"))
    if captions:
        size = vocabulary_size([text for each in train for _, text in each.texts])
        lines += [("", ""), ("[tokenizer]", ""), (f"size = {size}", "parts of words")]
        lines += [
            ("", ""),
            ("[model]", ""),
            ('preset = "captioner-tiny"', "for 64 pixels, from nothing"),
        ]
    elif start is None:
        lines += [("", ""), ("[model]", ""), ('preset = "resnet-20"', "a CNN for small images")]
    rate = "1e-3" if start in (None, START) else "1e-4"
    lines += [
        ("", ""),
        ("[train]", ""),
        (f"steps = {steps}", timed),
        (f"batch_size = {batch}", "few images need many small steps"),
        (
            f"learning_rate = {rate}",
            "" if start in (None, START) else "small: it has learned already",
        ),
        ('schedule = "cosine"', "down to zero at the last step"),
        (f"warmup = {max(1, steps // 10)}", ""),
        ("weight_decay = 0.05", "against learning by heart"),
        ("label_smoothing = 0.1", "against being too sure"),
    ]
    if counts and max(counts.values()) > UNBALANCED * min(counts.values()):
        lines.append(('class_weights = "balanced"', "rare classes count as much as frequent ones"))
    lines += [
        (
            f'precision = "{speed.precision if speed else "auto"}"',
            "the faster one here" if speed else "",
        ),
        (f"validate_every = {every}", f"{steps // every} times"),
        (f"save_every = {every}", "what a stopped run can go on from"),
        (f'early_stop = {{ metric = "val_{metric}", patience = 5 }}', "keep the best weights"),
    ]
    return "".join(f"{key}  # {why}\n" if why else f"{key}\n" for key, why in lines)


def _expect(
    divided: Divided,
    options: Options,
    side: int,
    batch: int,
    steps: int,
    minutes: float,
    speed: Speed | None,
) -> list[str]:
    train, valid, test = (divided.parts[part] for part in PARTS)
    lines = [
        f"{len(train):,} images to train on, {len(valid):,} to validate, {len(test):,} to test"
    ]
    if speed is None:
        lines.append("nothing was timed: this machine has no GPU. Train where there is one.")
    else:
        lines.append(
            f"{speed.parameters:,} parameters, {speed.units:,.0f} images a second here "
            f"({speed.device}, {speed.precision}): {steps:,} steps are about {minutes:.0f} minutes "
            f"and {steps * batch / len(train):.0f} passes over the images"
        )
        if steps * batch < 20 * len(train) and minutes > 0.5 * options.minutes:
            lines.append("so few passes teach little: give more `minutes`, or a GPU")
    if divided.found.captions:
        lines.append(
            f"{len(train):,} images are too few for free descriptions: expect phrases like yours"
            if len(train) < 10_000
            else "expect phrases like yours, and mistakes in what is rare in them"
        )
        return lines
    counts = Counter(label for each in valid for label in each.labels)
    most, count = counts.most_common()[0]
    if not divided.found.multi_label:
        unsure = 196 * math.sqrt(0.25 / len(valid))
        lines.append(
            f"always answering {most!r} would be right for {100 * count / len(valid):.0f}% of the "
            f"validation images; with {len(valid):,} of them an accuracy is known to {unsure:.0f} "
            "points up or down"
        )
    if few := [name for name, n in divided.classes.items() if n < 50]:
        lines.append(
            f"{len(few)} of {len(divided.classes)} classes have fewer than 50 images, "
            f"{', '.join(sorted(few)[:5])} among them: more of these help most"
        )
    if divided.facts.side >= 4 * side:
        lines.append(
            f"the model sees {side} pixels of your {divided.facts.side}: for differences in small "
            "parts raise image.height and image.width"
        )
    return lines
