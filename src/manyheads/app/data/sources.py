"""From the names in a [data] table to the data."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import torch

from manyheads.app.data.tables import ImageData, ImageRecipe, PairData
from manyheads.app.project.paths import data_files, endings, find_data, is_hub_data
from manyheads.app.project.recipe import CONVERTED, DataTable
from manyheads.data.augment.text_noise import joined_pairs
from manyheads.data.images.digits import read_digits
from manyheads.data.images.hub_images import read_hub
from manyheads.data.images.image_file import SUFFIXES
from manyheads.data.images.image_manifest import LISTINGS, read_listing
from manyheads.data.images.image_set import (
    ImageSet,
    hold_out,
    number_labels,
    read_folder,
    read_parquet,
    read_unlabelled,
)
from manyheads.data.images.shards import read_shards
from manyheads.data.splits import reject_test_split
from manyheads.data.synthetic.dates import SPLITS, generate
from manyheads.data.text.corpus import Corpus, hashes, origin, read_parallel
from manyheads.data.text.exclusion import Exclusion, held_out_texts
from manyheads.data.text.formats import FORMATS, Pair, read_pairs
from manyheads.data.text.streamed_corpus import StreamedCorpus, read_bounded
from manyheads.errors import DataError, RecipeError, UsageError, nearest
from manyheads.streams import stream
from manyheads.train.ranks import exchange, rank_and_world

DATES = {"train": 120_000, "valid": 3_300, "test": 3_300}  # pairs generated a split


def read_corpus(name: str, data: PairData) -> Corpus:
    """Read a parallel corpus: "dates:SPLIT" is generated, anything else is a path."""
    if name.startswith("dates:"):
        return _dates(name.removeprefix("dates:"))
    return read_parallel(find_corpus(name, data), data.source, data.target, data.columns)


def training_corpus(
    data: PairData, say: Callable[[str], None] = lambda _: None
) -> Corpus | StreamedCorpus:
    """Read what is trained on, without what is excluded; a large corpus stays on disk."""
    if data.train.startswith("dates:"):
        return read_corpus(data.train, data)
    paths = [find_corpus(name, data) for name in (data.train, *data.additional)]
    sides = (data.source, data.target)
    exclusion = Exclusion.of(
        text for name in data.exclude for text in held_out_texts(find_corpus(name, data), *sides)
    )

    def pairs() -> Iterator[Pair]:
        every = chain.from_iterable(read_pairs(p, *sides, columns=data.columns) for p in paths)
        return exclusion.filter(every) if exclusion.held_out else every

    origins = " + ".join(dict.fromkeys(origin(path, *sides) for path in paths))
    hashed = tuple(digest for path in paths for digest in hashes(path, *sides))
    corpus = read_bounded(pairs, origins, hashed)
    if data.exclude and isinstance(corpus, Corpus):
        count = exclusion.left_out
        say(f"left out {count:,} pair{'s' * (count != 1)} with a line of data.exclude")
    return corpus


def with_joined_pairs(
    corpus: Corpus | StreamedCorpus, share: float, seed: int
) -> Corpus | StreamedCorpus:
    """Add pairs that are two pairs in one line, `share` times as many as there are."""
    if not share:
        return corpus
    if isinstance(corpus, StreamedCorpus):
        raise RecipeError("augment.joined is for corpora that fit into memory: leave it out.")
    return corpus.extended(
        joined_pairs(corpus.source, corpus.target, share, stream(seed, "joined"))
    )


def find_corpus(name: str, data: PairData) -> str:
    """Return what `read_pairs` reads: the path of a corpus, or its name on the hub."""
    if "*" in name:
        raise RecipeError(
            f"{name!r} is a pattern: parallel text is one pair of files, named without their "
            f"endings, or one file ({', '.join(FORMATS)})."
        )
    refuse_converted(name)
    if is_hub_data(name):
        return name
    (path,) = find_data(name, data.root, endings(name, data.source, data.target))
    return str(path)


def refuse_converted(name: str) -> None:
    """Refuse the name that stands for the data of a converted model."""
    if name.startswith(CONVERTED):
        raise UsageError(
            f"The data of this model are not here ({name}): it was trained elsewhere. "
            "Name your own; to measure it, with `data`."
        )


def _dates(split: str) -> Corpus:
    if split not in SPLITS:
        raise RecipeError(
            f"There is no data 'dates:{split}'{nearest(split, SPLITS)}"
            f"Generated splits: {', '.join(f'dates:{name}' for name in SPLITS)}."
        )
    pairs = generate(split, size=DATES[split])
    digest = hashlib.sha256("\n".join(f"{p.source}\t{p.target}" for p in pairs).encode())
    return Corpus(
        source=[pair.source for pair in pairs],
        target=[pair.target for pair in pairs],
        origin=f"dates:{split}",
        groups=[pair.phrasing for pair in pairs],
        hashes=(digest.hexdigest(),),
        test=split == "test",
        links=[pair.links for pair in pairs],
    )


def read_images(name: str, recipe: ImageRecipe) -> ImageSet:
    """Find images, whatever form they come in; leave out bad ones if data.on_error says so."""
    images = find_images(name, recipe.data)
    if recipe.data.on_error == "stop":
        return images
    found = readable_images(images, recipe)
    if not len(found):
        raise DataError(f"{images.origin}: none of {len(images):,} images can be read.")
    return found


def readable_images(images: ImageSet, recipe: ImageRecipe) -> ImageSet:
    """Leave out the images that cannot be read; of several ranks, each reads a part."""
    rank, world = rank_and_world()
    threads = torch.get_num_threads()
    return images.readable(recipe.image, threads, rank=rank, world=world, gather=exchange)


def find_images(name: str, data: ImageData) -> ImageSet:
    """Find images and the labels of a classifier, without opening any of them."""
    columns, separator = data.columns, data.label_separator
    labelled = columns[1] is not None
    if name == "digits":
        digits = read_digits()
        if labelled:
            return digits
        labels, classes = number_labels(None, digits.names, None)
        return replace(digits, labels=labels, classes=classes)
    refuse_converted(name)
    if is_hub_data(name):
        return read_hub(name, *columns, separator)
    paths = find_data(name, data.root)
    if any(path.is_dir() for path in paths):
        if len(paths) > 1:
            raise RecipeError(f"{name!r} matches {len(paths)} folders or files: name one folder.")
        if separator is not None:
            raise RecipeError(
                "data.multi_label: class folders give each image one class. List the images "
                f"in a table ({', '.join(LISTINGS)}) instead."
            )
        return read_folder(paths[0]) if labelled else read_unlabelled(paths[0])
    suffixes = {path.suffix for path in paths}
    if suffixes <= SUFFIXES:
        raise UsageError(f"{name!r} is one image: name a folder or a table of images.")
    if suffixes == {".tar"}:
        return read_shards(paths, columns[1], separator)
    if suffixes <= set(LISTINGS):
        if len(paths) > 1:
            raise RecipeError(f"{name!r} matches {len(paths)} tables: name one.")
        return read_listing(paths[0], *columns, separator)
    if suffixes != {".parquet"}:
        raise UsageError(
            f"{name!r} is not read as images: name a folder of images, a table "
            f"({', '.join(LISTINGS)}), .parquet or .tar files."
        )
    return read_parquet(paths, *columns, separator)


def image_splits(recipe: ImageRecipe) -> tuple[ImageSet, ImageSet]:
    """Read training and validation images."""
    data = recipe.data
    train = read_images(data.train, recipe)
    if data.valid is not None:
        return train, read_images(data.valid, recipe).relabel(train.classes)
    if data.hold_out == 0:
        raise RecipeError(
            "There is no validation data: set data.valid, or data.hold_out to a number of images."
        )
    return hold_out(train, data.hold_out, data.random_state)


def corpus_split(split: str, data: PairData) -> Corpus:
    """Read the corpus that a recipe names for a split."""
    return read_corpus(named(split, data), data)


def image_split(split: str, recipe: ImageRecipe) -> ImageSet:
    """Read the images that a recipe names for a split."""
    if split in ("train", "valid"):
        return image_splits(recipe)[split == "valid"]
    return read_images(named(split, recipe.data), recipe)


def named(split: str, data: DataTable) -> str:
    """Return the name that a recipe gives to a split; refuse a split that it does not name."""
    given = {each: getattr(data, each) for each in ("train", "valid", "test")}
    name: str | None = given.get(split)
    if name is None:
        known = [each for each, found in given.items() if found]
        raise UsageError(
            f"The model's recipe names no split {split!r}{nearest(split, known)}"
            f"It names {', '.join(known)}; or give files with `data`."
        )
    return name


def inputs_of(data: DataTable, given: str | None) -> list[Path]:
    """List the files of all splits of a [data] table, and of data that were given instead."""
    suffixes = [f".{side}" for side in (getattr(data, "source", ""), getattr(data, "target", ""))]
    splits = (getattr(data, split, None) for split in ("train", "valid", "test"))
    lists = (getattr(data, key, ()) for key in ("vocabulary", "additional", "exclude"))
    names = [*splits, *chain(*lists), getattr(data, "images", None), given]
    return [path for name in names for path in data_files(name, data.root, suffixes)]


def reject_test_splits(*data: Corpus | StreamedCorpus | ImageSet) -> None:
    """Refuse to train or validate on a registered test split."""
    for part in data:
        reject_test_split(part.hashes, part.origin)
        if isinstance(part, Corpus) and part.test:
            raise UsageError(
                f"{part.origin} is a test split: it is measured once, with `final=True`, "
                "and never trained or selected on. Use dates:train and dates:valid."
            )
