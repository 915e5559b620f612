"""Readers yield the rows, and tasks the batches, that tests/golden/splits.json has hashes of.

What was meant to change is recorded anew: `python -m tests.recorded_splits`.
"""

import json
import os
from functools import cache

import pytest

from manyheads.errors import NotFoundError
from tests.recorded_splits import GOLDEN, digest, hash_split, small, splits

DATA = os.environ.get("MANYHEADS_DATA")
RECORDED: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text(encoding="utf-8"))

hashes = cache(small)


@pytest.mark.parametrize("part", ["pairs", "labels", "captions", "batches"])
def test_small_files_and_batches(part: str) -> None:
    """tsv, csv, jsonl, parquet, tar, COCO and a stand-in of the hub; batches of six tasks."""
    found = hashes()[part]
    assert found == RECORDED[part]
    assert len(found) >= 6


@pytest.mark.full
@pytest.mark.skipif(DATA is None, reason="needs the public data sets: set MANYHEADS_DATA")
@pytest.mark.parametrize("name", RECORDED["splits"])
def test_splits_of_shipped_recipes(name: str) -> None:
    """Each row as the recipe's task gets it; half a minute for all of them."""
    try:
        found = hash_split(splits()[name])
    except NotFoundError as error:
        pytest.skip(str(error))
    assert found == RECORDED["splits"][name]


def test_a_hash_depends_on_every_value_and_the_order() -> None:
    rows = [["a", 1, b"x"], ["b", 2, b"y"]]
    others = [
        rows[::-1],
        rows[:1],
        [["a", 1, b"x"], ["b", 2, b"z"]],
        [["a", 1, b"x"], ["c", 2, b"y"]],
    ]
    assert digest(rows) == digest([[*row] for row in rows])
    assert len({digest(each) for each in (rows, *others)}) == 5
