"""From the names in a recipe to pairs."""

import gzip
from pathlib import Path

import pytest

from manyheads.data.augment.text_noise import TextNoise
from manyheads.data.text.corpus import Corpus
from manyheads.errors import DataError, NotFoundError, RecipeError
from manyheads.project.paths import allow
from manyheads.recipe_data.named_splits import inputs_of
from manyheads.recipe_data.pair_splits import (
    find_corpus,
    read_corpus,
    training_corpus,
    with_more_pairs,
)
from manyheads.recipe_data.text_data import PairData


def data(root: Path, **keys: str | int | list[str]) -> PairData:
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
    allow("hub:owner/name:train")
    assert find_corpus("hub:owner/name:train", data(tmp_path)) == "hub:owner/name:train"


def test_names_that_do_not_fit(tmp_path: Path) -> None:
    """A pattern names images, not sentence pairs; a name in a form that is not there."""
    with pytest.raises(RecipeError, match=r"is a pattern.*\.tsv, \.csv, \.jsonl"):
        read_corpus("a*.tsv", data(tmp_path))
    with pytest.raises(NotFoundError, match=r"a\.jsonl"):
        read_corpus("a.jsonl", data(tmp_path))


def test_several_corpora_are_one(tmp_path: Path) -> None:
    """Of any form, in order; one that is named twice counts twice. Held-out lines stay out."""
    (tmp_path / "a.tsv").write_text("one\teins\nWhere is it?\tWo ist es?\n")
    (tmp_path / "b.en").write_text("two\n")
    (tmp_path / "b.de").write_text("zwei\n")
    (tmp_path / "refs.tsv").write_text("where is it\tWo ist das?\tWo liegt es?\n")
    told: list[str] = []
    table = data(tmp_path, train="a.tsv", additional=["b", "b"], exclude=["refs.tsv"])
    corpus = training_corpus(table, told.append)
    assert list(corpus.pairs()) == [("one", "eins"), ("two", "zwei"), ("two", "zwei")]
    assert len(told) == 1
    assert "1 pair" in told[0]
    assert len(corpus.hashes) == 1 + 2 + 2
    for name in ("a.tsv", "b.en", "b.de", "refs.tsv"):  # none of them is written over
        assert tmp_path / name in inputs_of(table, None)


def test_rows_of_a_table_are_selected_by_a_column(tmp_path: Path) -> None:
    """So that some of a table count more than others; the file is still known by its content."""
    (tmp_path / "a.tsv").write_text("one\teins\tbook\ntwo\tzwei\tweb\nthree\tdrei\tbook\n")
    columns: dict[str, str | int | list[str]] = {"source_column": 1, "target_column": 2}
    table = data(tmp_path, train="a.tsv", additional=["a.tsv[3=book]"], **columns)
    assert training_corpus(table).sample(1)[0] == ["one", "two", "three", "one", "three"]
    some = read_corpus("a.tsv[3=web]", table)
    assert list(some.pairs()) == [("two", "zwei")]
    assert some.hashes == read_corpus("a.tsv", table).hashes
    assert tmp_path / "a.tsv" in inputs_of(table, None)
    with pytest.raises(DataError, match=r"no row has 'news' in column 3"):
        read_corpus("a.tsv[3=news]", table)
    with pytest.raises(RecipeError, match="'a' is not a table"):
        read_corpus("a[3=web]", table)


def test_generated_data_stand_alone(tmp_path: Path) -> None:
    """Dates know their own splits."""
    for key in ("additional", "exclude"):
        with pytest.raises(ValueError, match=key):
            data(tmp_path, train="dates:train", **{key: ["a"]})


def test_joined_pairs_stand_behind_the_others(tmp_path: Path) -> None:
    """They are of no line; the others keep theirs."""
    (tmp_path / "a.tsv").write_text("One.\tEins.\nTwo.\tZwei.\n")
    table = data(tmp_path, train="a.tsv")
    corpus = with_more_pairs(training_corpus(table), TextNoise(joined=0.5), table, seed=1)
    assert isinstance(corpus, Corpus)
    assert len(corpus.source) == 3
    assert corpus.describe([1]).endswith("line 2")
    assert corpus.describe([2]).endswith("line 0")
    many = with_more_pairs(training_corpus(table), TextNoise(numbers=1.0), table, seed=1)
    assert [(english[-1], german[-1]) for english, german in many.pairs()] == [(".", ".")] * 3
    assert many.describe([2]).endswith("line 0")


def test_made_pairs_are_none_of_what_is_measured_on(tmp_path: Path) -> None:
    """Of five pairs that begin alike a phrase is made, unless it is a held-out line."""
    rows = [f"A big dog {n} runs.\tEin großer Hund {n} rennt.\n" for n in "abcde"]
    (tmp_path / "a.tsv").write_text("".join(rows))
    (tmp_path / "test.tsv").write_text("a big dog\tUnd dann?\n")
    noise = TextNoise(beginnings=1.0)
    for exclude, count in ([], 10), (["test.tsv"], 5):
        table = data(tmp_path, train="a.tsv", exclude=exclude)
        corpus = with_more_pairs(training_corpus(table), noise, table, seed=1)
        assert isinstance(corpus, Corpus)
        assert len(corpus.source) == count
