"""Sentences of one language: every line is there, and what is wrong is named."""

from pathlib import Path

import pytest

from manyheads.data.text.corpus import read_sentences
from manyheads.errors import DataError, NotFoundError
from tests.made import write_lines


def test_lines(tmp_path: Path) -> None:
    """One sentence a line, as they stand; named by file and line."""
    write_lines(tmp_path / "a.de", ["eins", " zwei  drei ", 'vier\u2028"fünf'])
    found = read_sentences(tmp_path / "a.de")
    assert found.lines == ["eins", " zwei  drei ", 'vier\u2028"fünf']
    assert found.describe([2, 0]) == f"{tmp_path / 'a.de'}, lines 1, 3"
    assert len(found.hashes) == 1


def test_a_column_of_a_table(tmp_path: Path) -> None:
    """Counted from 1."""
    write_lines(tmp_path / "a.tsv", ["one\teins\tx", "two\tzwei\ty"])
    assert read_sentences(tmp_path / "a.tsv", 2).lines == ["eins", "zwei"]
    with pytest.raises(DataError, match=r"a\.tsv, line 1: there is no column 4, only 3"):
        read_sentences(tmp_path / "a.tsv", 4)
    write_lines(tmp_path / "a.tsv", ["one\teins\tx", "two\tzwei"])
    with pytest.raises(DataError, match=r"a\.tsv, line 2: 2 columns where 3 are expected"):
        read_sentences(tmp_path / "a.tsv", 2)


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    """A missing file, and empty lines."""
    with pytest.raises(NotFoundError, match=r"none\.de"):
        read_sentences(tmp_path / "none.de")
    write_lines(tmp_path / "a.de", ["eins", "", "drei", " "])
    with pytest.raises(DataError, match=r"a\.de, line 2 \(and 1 more\): the line is empty"):
        read_sentences(tmp_path / "a.de")
