"""From the [data] table of a recipe to images with texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from manyheads.errors import DataError, RecipeError, UsageError
from manyheads.measure.score import is_test
from manyheads.project.base_recipe import read_recipe, write_recipe
from manyheads.project.paths import data_files, here, split_selection
from manyheads.recipe_data.caption_data import CaptionData, CaptionRecipe
from manyheads.recipe_data.caption_splits import (
    captioned_split,
    captioned_splits,
    read_captioned,
    readable_captioned,
)
from manyheads.recipe_data.named_splits import inputs_of
from tests.captioned import colour

RECIPE = """
task = "caption"

[data]
train = "a.csv[split=train]"
test = "a.csv[split=test]"
hold_out = 2

[data.texts]
en = "name"
ko = ["이름", "words"]

[image]
height = 8
width = 8

[model]
preset = "captioner-tiny"

[train]
steps = 1
"""


def write(root: Path, count: int = 8) -> None:
    """A table of images with names in two languages."""
    lines = ["image,name,이름,words,split"]
    for number in range(count):
        colour(number).save(root / f"{number}.png")
        split = "test" if number % 4 == 3 else "train"
        lines.append(f"{number}.png,n{number},이{number},w{number},{split}")
    (root / "a.csv").write_text("\n".join(lines), encoding="utf-8")


def recipe(root: Path, *changes: str) -> CaptionRecipe:
    path = root / "r.toml"
    path.write_text(RECIPE, encoding="utf-8")
    found = read_recipe(path, [f"data.root={root}", *changes])
    assert isinstance(found, CaptionRecipe)
    return found


# --- The table ----------------------------------------------------------------------------------


def table(**keys: Any) -> CaptionData:
    return CaptionData.model_validate({"train": "a"} | keys)


def test_columns_of_texts() -> None:
    """By language, or one column; the defaults are `caption`, in English."""
    columns = table(texts={"en": "a", "ko": ["b", "c"]}).caption_columns
    assert columns.names == ["a", "b", "c"]
    row = {"a": 1, "b": 2, "c": 3}
    assert list(columns.pick(row)) == [("en", 1), ("ko", 2), ("ko", 3)]
    assert list(table().caption_columns.pick({"caption": "x"})) == [("en", "x")]
    plain = table(caption="c", language="de").caption_columns
    assert list(plain.pick(row)) == [("de", 3)]
    by_row = table(language_column="lang").caption_columns
    assert list(by_row.pick({"caption": "x", "lang": "fr"})) == [("fr", "x")]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"texts": {"en": "a"}, "caption": "b"}, "leave out caption"),
        ({"texts": {"en": "a"}, "languages": ["en"]}, "leave out languages"),
        ({"texts": {"en": []}}, "neither a column nor a list"),
        ({"texts": {"en": ""}}, "at least 1 character"),
        ({"texts": {"English": "a"}}, "not the code of a language"),
        ({"texts": {"en": 3}}, "3 is neither a column nor a list of columns"),
        ({"texts": {"en": [3]}}, "valid string"),
        ({"texts": "a"}, "valid dictionary"),
        ({"language": "en", "language_column": "lang"}, "the same for all texts or in a column"),
        ({"languages": ["ko"]}, "languages lacks en"),
        ({"language": ""}, "not the code of a language"),
    ],
)
def test_tables_that_contradict_themselves(keys: dict[str, Any], message: str) -> None:
    """One way to name the texts."""
    with pytest.raises(ValueError, match=message):
        table(**keys)


def test_a_recipe_is_written_and_read_again(tmp_path: Path) -> None:
    """TOML holds the columns of every language, also those that the command line names."""
    write(tmp_path)
    first = recipe(tmp_path, "data.texts.en=words", 'data.texts.de=["name", "words"]')
    path = tmp_path / "written.toml"
    path.write_text(write_recipe(first, first.config(vocabulary=300)), encoding="utf-8")
    again = read_recipe(path, stored=True)
    assert again.data == first.data
    assert dict(first.data.texts) == {
        "en": ("words",),
        "ko": ("이름", "words"),
        "de": ("name", "words"),
    }


# --- Splits -------------------------------------------------------------------------------------


def test_splits(tmp_path: Path) -> None:
    """Held out of the rows that are selected; the test rows are read alone."""
    write(tmp_path)
    train, valid = captioned_splits(recipe(tmp_path))
    assert (len(train), len(valid)) == (4, 2)
    assert not {*train.images.names} & {*valid.images.names}
    assert captioned_split("valid", recipe(tmp_path)).texts == valid.texts
    test = captioned_split("test", recipe(tmp_path))
    assert [text for text in test.texts if text.startswith("n")] == ["n3", "n7"]
    assert test.languages == ["en", "ko", "ko"] * 2
    apart = recipe(tmp_path, "data.hold_out=0", "data.valid=a.csv[split=test]")
    assert captioned_splits(apart)[1].texts == test.texts
    with pytest.raises(RecipeError, match=r"set data\.valid, or data\.hold_out"):
        captioned_splits(recipe(tmp_path, "data.hold_out=0"))
    with pytest.raises(UsageError, match="no split 'tset': did you mean 'test'"):
        captioned_split("tset", recipe(tmp_path))


def test_images_that_cannot_be_read(tmp_path: Path) -> None:
    """Left out with the texts that are none, and listed once."""
    write(tmp_path)
    (tmp_path / "0.png").write_bytes(b"")
    text = (tmp_path / "a.csv").read_text(encoding="utf-8")
    (tmp_path / "a.csv").write_text(text.replace("n1,이1,w1", ",,"), encoding="utf-8")
    with pytest.raises(DataError, match="1 images or texts cannot be used"):
        captioned_splits(recipe(tmp_path))
    train, valid = captioned_splits(recipe(tmp_path, "data.on_error=skip", "data.hold_out=1"))
    assert (len(train), len(valid)) == (3, 1)
    assert valid.images.left_out == ()
    assert [Path(each).name for each in train.images.left_out] == [
        "1.png (an image without a text)",
        "0.png (it is empty (0 bytes))",
    ]
    for number in range(8):
        (tmp_path / f"{number}.png").write_bytes(b"")
    with pytest.raises(DataError, match="none of 5 images can be read"):
        readable_captioned("a.csv[split=train]", recipe(tmp_path, "data.on_error=skip"))


def test_a_language_that_is_not_trained_on(tmp_path: Path) -> None:
    """Validation in it would measure nothing."""
    for number, language in enumerate(("en", "ko")):
        row = {"image": f"{number}.png", "caption": "x", "lang": language}
        (tmp_path / f"{language}.jsonl").write_text(json.dumps(row))
        colour(number).save(tmp_path / f"{number}.png")
    changes = ["data.texts=", "data.language_column=lang", "data.hold_out=0"]
    changes += ["data.train=en.jsonl", "data.valid=ko.jsonl"]
    with pytest.raises(DataError, match=r"ko\.jsonl has texts in ko, .*lack: they have en"):
        captioned_splits(recipe(tmp_path, *changes))


# --- Names --------------------------------------------------------------------------------------


def test_names_that_select_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[column=value] at the end, unless a file is called so."""
    monkeypatch.chdir(tmp_path)
    assert split_selection("a.csv[split=test]") == ("a.csv", ("split", "test"))
    assert split_selection("[b]/a.csv[c=]") == ("[b]/a.csv", ("c", ""))
    for name in ("a.csv", "a[0].csv", "[a=b]", "a[=b]", "a[b]"):
        assert split_selection(name) == (name, None)
    write(tmp_path)
    assert here("a.csv[split=test]") == f"{tmp_path / 'a.csv'}[split=test]"
    assert here("b.csv[split=test]") == "b.csv[split=test]"
    (tmp_path / "a.csv[split=test]").write_bytes((tmp_path / "a.csv").read_bytes())
    assert split_selection("a.csv[split=test]") == ("a.csv[split=test]", None)


def test_nothing_is_written_over_data(tmp_path: Path) -> None:
    """A file is an input, also where a part of it is named; so is the folder of images."""
    assert tmp_path / "a.csv" in data_files("a.csv[split=test]", str(tmp_path))
    data = table(root=str(tmp_path), train="a.csv[split=test]", images="photos")
    assert {tmp_path / "a.csv", tmp_path / "photos"} <= {*inputs_of(data, None)}


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("a.csv[split=test]", True),
        ("a.csv", True),  # the test rows are among them
        ("a.csv[name=n3]", True),  # may be among them
        ("a.csv[split=train]", False),
        ("b.csv[split=test]", False),
    ],
)
def test_test_data_by_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, test: bool
) -> None:
    """Any part of the file that may hold a test row is a test split."""
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    data = recipe(tmp_path).data
    assert is_test(name, data) == test
    assert is_test(f"{tmp_path}/./{name}", data) == test
    whole = data.model_copy(update={"test": "a.csv"})
    assert is_test(name, whole) == name.startswith("a")


def test_a_folder_of_images_may_be_named(tmp_path: Path) -> None:
    """By the path rule; it must be there."""
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (2, 2)).save(tmp_path / "photos" / "0.png")
    (tmp_path / "a.csv").write_text("image,caption\n0.png,x\n")
    data = table(root=str(tmp_path), train="a.csv", images="photos")
    assert read_captioned("a.csv", data).images.open(0).size == (2, 2)
    with pytest.raises(UsageError, match="There is no data 'pictures'"):
        read_captioned("a.csv", data.model_copy(update={"images": "pictures"}))
