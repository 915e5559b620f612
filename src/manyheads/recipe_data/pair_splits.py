"""Parallel text that a recipe names."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from manyheads.data.augment.beginnings import beginning_pairs
from manyheads.data.augment.number_pairs import number_pairs
from manyheads.data.augment.speech_levels import polite_pairs, with_levels
from manyheads.data.augment.text_noise import MADE_ONCE, TextNoise, joined_pairs
from manyheads.data.synthetic.dates import SPLITS, generate
from manyheads.data.text.corpus import (
    Corpus,
    StreamedCorpus,
    TrainingCorpus,
    hashes,
    origin,
    read_bounded,
)
from manyheads.data.text.exclusion import Exclusion, held_out_texts, hold_out, near_key
from manyheads.data.text.formats import FORMATS, Pair, is_one_file, read_pairs
from manyheads.errors import DataError, RecipeError, UsageError, nearest
from manyheads.project.base_recipe import CONVERTED
from manyheads.project.paths import endings, find_data, is_hub_data, split_selection
from manyheads.recipe_data.named_splits import named
from manyheads.recipe_data.text_data import PairData
from manyheads.streams import stream

DATES = {"train": 120_000, "valid": 3_300, "test": 3_300}  # pairs generated a split


def read_corpus(name: str, data: PairData) -> Corpus:
    """Read a parallel corpus: "dates:SPLIT" is generated, anything else is a path."""
    if name.startswith("dates:"):
        return _dates(name.removeprefix("dates:"))
    path = find_corpus(name, data)
    hashed = hashes(path, data.source, data.target)
    return Corpus.of(list(pairs_of(name, data)), _origin(name, path, data), hashed)


def _origin(name: str, path: str, data: PairData) -> str:
    """Name a corpus for messages, with the rows selected."""
    whole, (_, rows) = origin(path, data.source, data.target), split_selection(name)
    return whole if rows is None else f"{whole}[{rows[0]}={rows[1]}]"


def pairs_of(name: str, data: PairData) -> Iterator[Pair]:
    """Read a corpus, or the rows that a name like "train.tsv[3=tatoeba]" selects by a column.

    Raises:
        DataError: no row has that value.
    """
    path, (_, rows) = find_corpus(name, data), split_selection(name)
    sides = data.source, data.target
    pairs = read_pairs(path, *sides, columns=data.columns)
    if rows is None:
        yield from pairs
        return
    column = int(rows[0]) if rows[0].isdigit() else rows[0]
    values = read_pairs(path, *sides, columns=(column, data.columns[1]))
    found = False
    for pair, (_, value, _) in zip(pairs, values, strict=True):
        if value == rows[1]:
            found = True
            yield pair
    if not found:
        raise DataError(f"{path}: no row has {rows[1]!r} in column {column!r}.")


def training_corpus(data: PairData, say: Callable[[str], None] = lambda _: None) -> TrainingCorpus:
    """Read what is trained on, without what is excluded; a large corpus stays on disk."""
    if data.train.startswith("dates:"):
        return read_corpus(data.train, data)
    names = (data.train, *data.additional)
    paths = [find_corpus(name, data) for name in names]
    sides = (data.source, data.target)
    exclusion, held = _excluded(data), _held(data)

    def pairs() -> Iterator[Pair]:
        return _free(chain.from_iterable(pairs_of(name, data) for name in names), exclusion, held)

    each = (_origin(name, path, data) for name, path in zip(names, paths, strict=True))
    origins = " + ".join(dict.fromkeys(each))
    hashed = tuple(digest for path in paths for digest in hashes(path, *sides))
    corpus = read_bounded(pairs, origins, hashed)
    if data.exclude and isinstance(corpus, Corpus):
        count = exclusion.left_out
        say(f"left out {count:,} pair{'s' * (count != 1)} with a line of data.exclude")
    return corpus


def _excluded(data: PairData) -> Exclusion:
    sides = (data.source, data.target)
    texts = (held_out_texts(find_corpus(name, data), *sides) for name in data.exclude)
    return Exclusion.of(chain.from_iterable(texts))


def _held(data: PairData) -> set[str]:
    """Return the keys of the sources that `data.hold_out` takes for validation."""
    return set(map(near_key, corpus_split("valid", data).source)) if data.hold_out else set()


def _free(pairs: Iterator[Pair], exclusion: Exclusion, held: set[str]) -> Iterator[Pair]:
    """Yield the pairs that equal nothing that is measured on."""
    rest = (pair for pair in pairs if near_key(pair.source) not in held) if held else pairs
    return exclusion.filter(rest) if exclusion.held_out else rest


def with_more_pairs(
    corpus: TrainingCorpus, augment: TextNoise, data: PairData, seed: int
) -> TrainingCorpus:
    """Add the pairs that `augment` makes of others, and the level of its target to each source.

    Those that equal what is measured on are left out, as they are of the corpus.
    """
    made = [name for name in MADE_ONCE if getattr(augment, name)]
    if not made:
        return corpus
    if isinstance(corpus, StreamedCorpus):
        raise RecipeError(f"augment.{made[0]} is for corpora that fit into memory: leave it out.")
    sides = corpus.source, corpus.target
    pairs = list(joined_pairs(*sides, augment.joined, stream(seed, "joined")))
    if augment.numbers:
        languages = data.source, data.target
        pairs += number_pairs(*sides, augment.numbers, stream(seed, "numbers"), languages)
    if augment.beginnings:
        pairs += beginning_pairs(*sides, augment.beginnings, stream(seed, "beginnings"))
    if augment.polite:
        pairs += polite_pairs(*sides, augment.polite, stream(seed, "polite"), data.target)
    every = (Pair(0, *pair) for pair in pairs)  # they are in no file
    more = list(_free(every, _excluded(data), _held(data)))
    lines = corpus.lines or range(corpus.first_line, corpus.first_line + len(corpus))
    source = corpus.source + [pair.source for pair in more]
    target = corpus.target + [pair.target for pair in more]
    if augment.levels:
        source = with_levels(source, target, stream(seed, "levels"), data.target)
    lines = [*lines, *(pair.line for pair in more)]
    return replace(corpus, source=source, target=target, lines=lines)


def find_corpus(name: str, data: PairData) -> str:
    """Return what `read_pairs` reads: the path of a corpus, or its name on the hub.

    Of a name with selected rows it is that of the whole table.
    """
    name, rows = split_selection(name)
    if rows is not None and not is_one_file(name):
        raise RecipeError(f"{name!r} is not a table, so [{rows[0]}={rows[1]}] selects nothing.")
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


def corpus_split(split: str, data: PairData) -> Corpus:
    """Read the corpus that a recipe names for a split, or hold it out of the training data.

    Raises:
        DataError: too few pairs to hold so many out.
    """
    if split == "valid" and data.hold_out:
        whole = read_corpus(data.train, data)
        try:
            _, held = hold_out(whole.source, data.hold_out, data.random_state)
        except DataError as error:
            raise DataError(f"{whole.origin}: {error} Change data.hold_out.") from None
        return whole.select(np.array(held))
    return read_corpus(named(split, data), data)
