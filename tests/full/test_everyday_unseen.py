"""No everyday sentence, and no translation of one, is in the files that translators learn from."""

import os
from pathlib import Path

import pytest

from manyheads.data.text.exclusion import normalised
from tests.everyday import table

DATA = os.environ.get("MANYHEADS_DATA")  # before tests are kept from it
FILES = (
    "tatoeba/train.en-de.tsv",
    "tatoeba/train.en-fr.tsv",
    "tatoeba/val.en-de.refs.tsv",
    "tatoeba/val.en-fr.refs.tsv",
    "multi30k/train.en",
    "multi30k/train.de",
    "enko/train.tsv",
    "enko/val.tsv",
    "enko/more.tsv",
    "enko/mono.ko",
)


@pytest.mark.full
@pytest.mark.skipif(DATA is None, reason="needs the public data sets: set MANYHEADS_DATA")
@pytest.mark.parametrize("name", FILES)
def test_no_line_is_an_everyday_sentence(name: str) -> None:
    """Case, punctuation and spaces are ignored."""
    tables = (table("english"), table("korean"))
    ours = {normalised(text) for rows in tables for row in rows for text in row[1:]}
    lines = (Path(str(DATA)) / name).read_text(encoding="utf-8").split("\n")
    assert not ours & {normalised(cell) for line in lines for cell in line.split("\t")}


@pytest.mark.full
@pytest.mark.skipif(DATA is None, reason="needs the public data sets: set MANYHEADS_DATA")
def test_minimal_pairs_are_lines_of_validation_files() -> None:
    for name, number, sentence, *_ in table("minimal_pairs"):
        line = (Path(str(DATA)) / name).read_text(encoding="utf-8").split("\n")[int(number) - 1]
        assert line.split("\t")[0] == sentence
