"""Icons by words: the shipped matcher against search over names and over the true words.

    MANYHEADS_DATA=FOLDER .venv/bin/python -m benchmarks.icons [--model icon-search] [--split valid]

Every search word of the split is a query, every icon of the split may be found, and an icon is
right if the word is one of its own. Of searches over text, icons are ranked by the share of common
words; ties are broken at random, once with each of ten seeds. Both, names and pixels, are what
`manyheads index --names` compares.
"""

import argparse
import re
from collections.abc import Callable, Sequence

import numpy as np
import torch

import manyheads
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.pixels import Pixels
from manyheads.image_search.embedder import with_names
from manyheads.image_search.indexed_images import words_of
from manyheads.recipe_data.caption_data import CaptionData
from manyheads.recipe_data.caption_splits import read_captioned
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.task import RANKS, image_vectors, queries, text_ranks

ICONS = "icons/icons48.parquet"
SEEDS = 10


def words(text: str) -> set[str]:
    """Split a text into words."""
    return set(re.findall(r"\w+", text.casefold()))


def overlap(query: str, document: set[str]) -> float:
    """The share of words that a query and a document have in common (Jaccard 1912)."""
    asked = words(query)
    return len(asked & document) / max(len(asked | document), 1)


def ranks(scores: np.ndarray, right: Sequence[set[int]], seed: int) -> np.ndarray:
    """Return how many icons come before the first right one, ties broken at random."""
    drawn = np.random.default_rng(seed).random(scores.shape)
    found = []
    for row, noise, own in zip(scores, drawn, right, strict=True):
        order = np.lexsort((noise, -row))
        found.append(np.flatnonzero(np.isin(order, list(own)))[0])
    return np.array(found)


def main() -> None:
    """Print recall for each search, all together and by set of icons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="icon-search")
    parser.add_argument("--split", default="valid", help="valid, or test: once, at the end")
    given = parser.parse_args()
    name = f"{ICONS}[split={given.split}]"

    def read(column: str) -> CaptionedImages:
        return read_captioned(name, CaptionData(train=name, texts={"en": (column,)}))

    icons, names, sets = read("words"), read("name"), read("set")
    asked = queries(icons)
    model = manyheads.load(given.model)
    assert isinstance(model, Matcher)
    vectors = image_vectors(model.model, Pixels(icons.images, model.preprocessing))
    texts = torch.from_numpy(model.embed_texts(asked.texts))
    own = [
        set().union(*(words(icons.texts[n]) for n in icons.captions(i))) for i in range(len(icons))
    ]
    files = [words(text.replace("-", " ")) for text in names.texts]

    def search(documents: Sequence[set[str]]) -> Callable[[int], np.ndarray]:
        scores = np.array([[overlap(text, each) for each in documents] for text in asked.texts])
        return lambda seed: ranks(scores, asked.images, seed)

    called = model.embed_texts([words_of(f"{name}.png") for name in names.texts])
    named = torch.from_numpy(with_names(vectors.numpy(), called))
    nearest = text_ranks(vectors, texts, asked.images)
    nearest_named = text_ranks(named, texts, asked.images)
    ways = {
        "pixels": lambda _: nearest,
        "file names": search(files),
        "both": lambda _: nearest_named,
        "true words": search(own),
    }
    where = np.array(sets.texts)
    print(f"{len(icons):,} icons, {len(asked.texts):,} words")
    for group in ["all", *sorted(set(sets.texts))]:
        chosen = [
            n
            for n, images in enumerate(asked.images)
            if group == "all" or any(where[image] == group for image in images)
        ]
        for way, measure in ways.items():
            each = [measure(seed)[chosen] for seed in range(SEEDS)]
            recalls = [100 * float(np.mean([(r < k).mean() for r in each])) for k in RANKS]
            told = "  ".join(
                f"first {k}: {value:5.1f}%" for k, value in zip(RANKS, recalls, strict=True)
            )
            print(f"{group:8} {len(chosen):6,} words  {way:12} {told}")


if __name__ == "__main__":
    main()
