"""How much of a batch is padding: what packing sentences without it could save at most.

    MANYHEADS_DATA=... python -m benchmarks.padding

Batches are those of training (`length_buckets`), with the shipped model's tokenizers.
"""

import argparse
from typing import Any, cast

import numpy as np

import manyheads
from manyheads.data.batching.buckets import length_buckets
from manyheads.data.text.corpus import read_parallel
from manyheads.project.paths import find_data


def main() -> None:
    """Print the share of padding of each side, and the attention scores that it adds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-tokens", type=int, default=4096, help="of a batch, a side")
    given = parser.parse_args()
    tokenizers = cast(Any, manyheads.load("multi30k-en-de")).tokenizers
    path = find_data("multi30k/train", None, (".en", ".de"))[0]
    corpus = read_parallel(path, "en", "de")
    sides = {
        "source": tokenizers.source.encode(corpus.source),
        "target": tokenizers.target.encode(corpus.target),
    }
    source, target = (np.array([len(each) + 1 for each in ids]) for ids in sides.values())
    batches = length_buckets(source, target, given.max_tokens, seed=1, epoch=0)
    for name, side in zip(sides, (source, target), strict=True):
        rows = [side[batch] for batch in batches]
        padded = sum(len(row) * int(row.max()) for row in rows)
        scores = sum(len(row) * int(row.max()) ** 2 for row in rows) / (side**2).sum()
        print(f"{name}: {1 - side.sum() / padded:.1%} padding; {scores:.2f} times the scores")


if __name__ == "__main__":
    main()
