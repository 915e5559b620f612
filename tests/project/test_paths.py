"""Where things are found: the path rule, and models and recipes by name."""

import re
import tomllib
from pathlib import Path

import pytest

from manyheads.errors import NotFoundError, UsageError
from manyheads.project.base_recipe import read_recipe
from manyheads.project.lock import locked
from manyheads.project.paths import (
    data_files,
    endings,
    find_data,
    find_model,
    find_recipe,
    here,
    make_room,
    shipped,
)
from manyheads.tasks.generate.recipe import GenerateRecipe
from manyheads.tasks.translate.recipe import TranslateRecipe
from tests.made import write_lines

SUFFIXES = (".en", ".de")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder that holds nothing, and no MANYHEADS_DATA."""
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    monkeypatch.delenv("MANYHEADS_DATA", raising=False)


def corpus(stem: Path) -> Path:
    write_lines(stem.with_name(stem.name + ".en"), ["one"])
    write_lines(stem.with_name(stem.name + ".de"), ["eins"])
    return stem


# --- Data ---------------------------------------------------------------------------------------


def test_the_recipes_root_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.root, else MANYHEADS_DATA, else data/ in the current folder."""
    for root in ("key", "variable", "current/data"):
        corpus(tmp_path / root / "numbers" / "train")
    monkeypatch.setenv("MANYHEADS_DATA", str(tmp_path / "variable"))
    key = str(tmp_path / "key")
    assert find_data("numbers/train", key, SUFFIXES) == [tmp_path / "key" / "numbers" / "train"]
    found = find_data("numbers/train", None, SUFFIXES)
    assert found == [tmp_path / "variable" / "numbers" / "train"]
    monkeypatch.delenv("MANYHEADS_DATA")
    assert find_data("numbers/train", None, SUFFIXES) == [Path("data/numbers/train")]


def test_an_absolute_path_is_a_path(tmp_path: Path) -> None:
    """Whatever the root is."""
    stem = corpus(tmp_path / "any" / "train")
    assert find_data(str(stem), "/nowhere", SUFFIXES) == [stem]


def test_addresses_of_this_machine_are_not_written_over(tmp_path: Path) -> None:
    """What they name is among the files of the data."""
    stem = corpus(tmp_path / "any" / "train")
    wanted = tmp_path / "any" / "train.en"
    assert wanted in data_files(f"file://{stem}", None, SUFFIXES)
    assert wanted in data_files("train", f"local://{stem.parent}", SUFFIXES)


def test_home_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """~ in a recipe, where no shell expands it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    corpus(tmp_path / "corpora" / "train")
    assert find_data("train", "~/corpora", SUFFIXES) == [tmp_path / "corpora" / "train"]
    assert find_data("~/corpora/train", None, SUFFIXES) == [tmp_path / "corpora" / "train"]


def test_a_pattern_finds_all_files_in_order(tmp_path: Path) -> None:
    """As large sets of images are stored."""
    for number in (2, 0, 1):
        (tmp_path / f"train-{number}-of-3.parquet").write_bytes(b"")
    found = find_data("train-*-of-3.parquet", str(tmp_path))
    assert found == [tmp_path / f"train-{number}-of-3.parquet" for number in range(3)]


def test_missing_data_names_both_places_and_what_to_do(tmp_path: Path) -> None:
    """Under the data root, and for the command line the current folder; and the remedy."""
    with pytest.raises(NotFoundError) as caught:
        find_data("numbers/train", str(tmp_path / "root"), SUFFIXES)
    message = str(caught.value)
    assert "There is no data 'numbers/train'" in message
    assert f"{tmp_path / 'root' / 'numbers' / 'train'} with .en and .de" in message
    assert str(tmp_path / "current" / "numbers" / "train") in message
    assert "data.root of the recipe, which comes before MANYHEADS_DATA" in message
    with pytest.raises(NotFoundError, match="MANYHEADS_DATA=FOLDER in the environment"):
        find_data("numbers/train", None, SUFFIXES)


def test_missing_data_sets_we_know_are_named_with_their_home() -> None:
    """Where to get them."""
    with pytest.raises(NotFoundError, match=r"github\.com/multi30k/dataset"):
        find_data("multi30k/train", None, SUFFIXES)
    with pytest.raises(NotFoundError, match="uoft-cs/cifar10"):
        find_data("cifar10/train-*-of-4.parquet", None)


@pytest.mark.parametrize("name", sorted(shipped("recipes")))
def test_data_of_every_recipe_are_named_with_their_home(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody has said where data lie: how to say it, whose they are, and how to get them."""
    monkeypatch.delenv("MANYHEADS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    table = tomllib.loads(shipped("recipes")[name].read_text("utf-8"))["data"]
    splits = [table[key] for key in ("train", "valid", "test") if "/" in table.get(key, "")]
    for split in splits:
        with pytest.raises(NotFoundError) as missing:
            find_data(split, None)
        message = str(missing.value)
        assert f"looked for {tmp_path}/data/" in message
        assert "MANYHEADS_DATA=FOLDER in the environment, or data.root=FOLDER" in message
        assert re.search(
            rf"Its home: https://.*see `manyheads fetch {split.partition('/')[0]}`", message
        )


def test_one_side_alone_is_not_a_corpus(tmp_path: Path) -> None:
    """A lone train.en in the current folder does not hide the corpus under the data root."""
    whole = corpus(tmp_path / "root" / "train")
    write_lines(tmp_path / "current" / "train.en", ["one"])
    assert here("train", SUFFIXES) == "train"
    assert find_data("train", str(tmp_path / "root"), SUFFIXES) == [whole]
    whole.with_name("train.de").unlink()
    with pytest.raises(NotFoundError, match=r"with \.en and \.de, and there is no train\.de"):
        find_data("train", str(tmp_path / "root"), SUFFIXES)


def test_compressed_files_are_found_by_the_same_name(tmp_path: Path) -> None:
    """Each side may be compressed or not."""
    write_lines(tmp_path / "train.en.gz", ["the content does not matter here"])
    write_lines(tmp_path / "train.de", ["eins"])
    assert find_data("train", str(tmp_path), SUFFIXES) == [tmp_path / "train"]


def test_one_file_needs_no_endings() -> None:
    """A .tsv, .csv, .jsonl, .parquet or .tmx holds both sides, compressed or not."""
    assert endings("a/b.tsv", "en", "de") == ("",)
    assert endings("a/b.jsonl.gz", "en", "de") == ("",)
    assert endings("news.2016", "en", "de") == (".en", ".de")
    assert endings("halves", None, None) == ("",)


@pytest.mark.parametrize("name", ["", ".", "..", "/", "none/", "*", "a" * 300, "a\0b"])
def test_odd_names_are_answered_too(name: str, tmp_path: Path) -> None:
    """Missing like any other: never a traceback."""
    with pytest.raises(NotFoundError, match="There is no data"):
        find_data(name, str(tmp_path / "root"), (".xx", ".yy"))


def test_the_current_folder_counts_on_the_command_line(tmp_path: Path) -> None:
    """Only there, and only for what exists; the result no longer depends on the folder."""
    corpus(tmp_path / "current" / "mine")
    assert here("mine", ("", *SUFFIXES)) == str(tmp_path / "current" / "mine")
    assert here("mine", ("", ".fr")) == "mine"
    assert here("none") == "none"
    assert here("a" * 300) == "a" * 300  # the name of no file, and none that can be asked for
    assert here(".") == str(tmp_path / "current")


def test_every_path_of_the_command_line_is_looked_up_here(tmp_path: Path) -> None:
    """The root, a folder whatever the languages; and each file of a list."""
    current = tmp_path / "current"
    (current / "sets").mkdir()
    (current / "mono.de").write_text("eins")
    translator = read_recipe(find_recipe("multi30k-en-de"), ["data.root=sets"])
    assert isinstance(translator, TranslateRecipe)
    assert translator.data.root == str(current / "sets")
    writer = read_recipe(
        find_recipe("multi30k-de-gpt-tiny"), ['data.vocabulary=["mono.de", "other.de"]']
    )
    assert isinstance(writer, GenerateRecipe)
    assert writer.data.vocabulary == (str(current / "mono.de"), "other.de")


# --- Models and recipes -------------------------------------------------------------------------


def test_recipes_by_name_and_by_path(tmp_path: Path) -> None:
    """A shipped name, or a file."""
    assert find_recipe("digits") == shipped("recipes")["digits"]
    path = tmp_path / "current" / "own.toml"
    path.write_text("")
    assert find_recipe("own.toml") == Path("own.toml")


def test_an_unknown_recipe() -> None:
    """The nearest name, all names, and that a path will do."""
    with pytest.raises(NotFoundError, match="no recipe"):
        find_recipe("a" * 300)
    with pytest.raises(NotFoundError) as caught:
        find_recipe("digit")
    message = str(caught.value)
    assert "no recipe 'digit': did you mean 'digits'?" in message
    assert "date-en-ko" in message
    assert "path" in message


def test_a_name_like_no_other() -> None:
    """With nothing to suggest, a sentence ends where a question would have begun."""
    with pytest.raises(NotFoundError, match=r"no model 'qqqq'\. Shipped: "):
        find_model("qqqq")


def test_a_pair_of_languages_that_no_model_has() -> None:
    """A translator of other languages is no suggestion; the hub has one under this name."""
    with pytest.raises(NotFoundError) as found:
        find_model("fr-en")
    assert "did you mean" not in str(found.value)
    assert "hf:Helsinki-NLP/opus-mt-fr-en." in str(found.value)


def test_room_for_a_file(tmp_path: Path) -> None:
    """Its folder is made; a folder is no file."""
    make_room(tmp_path / "a" / "b" / "c.txt")
    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(UsageError, match=r"b is a folder"):
        make_room(tmp_path / "a" / "b")


@pytest.mark.parametrize("address", ["s3://bucket/o.txt", "file:///tmp/o.txt", "GS://b/c/o.txt"])
def test_no_folder_for_an_address(tmp_path: Path, address: str) -> None:
    """Neither of a file nor to work in; an absolute path is none."""
    with pytest.raises(UsageError, match="is an address"):
        make_room(Path(address))
    with pytest.raises(UsageError, match="is an address"), locked(Path(address)):
        pass
    assert list((tmp_path / "current").iterdir()) == []
    make_room(tmp_path / "s3:" / "o.txt")


def test_models_by_path(tmp_path: Path) -> None:
    """A folder; whether a model is in it is seen when it is opened."""
    (tmp_path / "current" / "model").mkdir()
    assert find_model("model") == Path("model")
    assert find_model(str(tmp_path)) == tmp_path


def test_an_unknown_model(tmp_path: Path) -> None:
    """A file is not a model folder either."""
    (tmp_path / "current" / "weights").write_bytes(b"")
    for name in ("weights", "date-en-kr", "a" * 300):
        with pytest.raises(NotFoundError, match=f"no model '{name}'.*path of your own"):
            find_model(name)
