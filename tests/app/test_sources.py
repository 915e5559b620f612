"""From the names in a recipe to pairs."""

import gzip
from pathlib import Path

import pytest

from manyheads.app.data.sources import find_corpus, read_corpus
from manyheads.app.data.tables import PairData
from manyheads.errors import NotFoundError, RecipeError


def data(root: Path, **keys: str | int) -> PairData:
    named = {"train": "a", "valid": "b", "source": "en", "target": "de"} | keys
    return PairData.model_validate({"root": str(root)} | named)


def test_columns_reach_the_reader(tmp_path: Path) -> None:
    """One .tsv serves both directions."""
    (tmp_path / "a.tsv").write_text("one\teins\tremark\n")
    forth = read_corpus("a.tsv", data(tmp_path, source_column=1, target_column=2))
    back = read_corpus("a.tsv", data(tmp_path, source_column=2, target_column=1))
    assert (forth.source, forth.target) == (["one"], ["eins"])
    assert (back.source, back.target) == (["eins"], ["one"])
    assert forth.hashes == back.hashes


def test_compressed_sides_are_the_same_corpus(tmp_path: Path) -> None:
    """Found by the same name, and recognised by the register of splits."""
    (tmp_path / "a.en").write_bytes(b"one\n")
    (tmp_path / "a.de").write_bytes(b"eins\n")
    plain = read_corpus("a", data(tmp_path))
    for ending in ("en", "de"):
        path = tmp_path / f"a.{ending}"
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read_corpus("a", data(tmp_path)) == plain


def test_names_on_the_hub_are_not_paths(tmp_path: Path) -> None:
    """They are left as they are."""
    assert find_corpus("hub:owner/name:train", data(tmp_path)) == "hub:owner/name:train"


def test_names_that_do_not_fit(tmp_path: Path) -> None:
    """A pattern names images, not sentence pairs; a name in a form that is not there."""
    with pytest.raises(RecipeError, match=r"is a pattern.*\.tsv, \.csv, \.jsonl"):
        read_corpus("a*.tsv", data(tmp_path))
    with pytest.raises(NotFoundError, match=r"a\.jsonl"):
        read_corpus("a.jsonl", data(tmp_path))
