"""Everything that users get wrong: what, where and a remedy on stderr; never a traceback."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from manyheads.files import sha256
from tests.cli.conftest import Answer, Call
from tests.made import (
    CLASSIFY,
    TRANSLATE,
    half,
    write_halves,
    write_lines,
    write_numbers,
    write_recipe,
)


def refused(answer: Answer, code: int, *parts: str) -> None:
    """The exit code; nothing on stdout; one message on stderr with all these parts."""
    assert answer.code == code
    assert answer.out == ""
    assert "Traceback" not in answer.err
    message = answer.err[answer.err.index("manyheads: ") :]
    assert [part for part in parts if part not in message] == [], message


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A recipe of two steps with its data."""
    write_numbers(tmp_path, train=20, other=4)
    text = TRANSLATE.replace("steps = 60", "steps = 2")
    return write_recipe(tmp_path / "numbers.toml", text, tmp_path)


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    """A recipe of two steps with its data."""
    write_halves(tmp_path)
    text = CLASSIFY.replace("steps = 40", "steps = 4").replace("save_every = 10", "save_every = 1")
    return write_recipe(tmp_path / "halves.toml", text, tmp_path)


# --- Recipes ------------------------------------------------------------------------------------


def test_unknown_recipe(call: Call) -> None:
    """The nearest name."""
    refused(call("train", "dgits"), 2, "no recipe 'dgits'", "did you mean 'digits'?")


def test_unknown_key(call: Call, numbers: Path) -> None:
    """In the call or in the file, the nearest key."""
    refused(call("train", numbers, "train.stpes=3"), 2, "train.stpes", "did you mean 'steps'?")
    numbers.write_text(numbers.read_text() + "[modle]\nsize = 3\n")
    refused(call("train", numbers), 2, str(numbers), "'modle'", "did you mean 'model'?")


def test_not_toml(call: Call, tmp_path: Path) -> None:
    """A recipe in another language."""
    (tmp_path / "recipe.yaml").write_text("task: translate\n")
    refused(call("train", "recipe.yaml"), 2, "recipe.yaml is not valid TOML")


def test_values_that_no_model_can_have(call: Call, numbers: Path) -> None:
    """Found by the model itself."""
    refused(call("train", numbers, "model.heads=3"), 2, "dim 16", "3 heads")


# --- Data ---------------------------------------------------------------------------------------


def test_missing_data(call: Call, numbers: Path, tmp_path: Path) -> None:
    """Both places looked at and what to set."""
    answer = call("train", numbers, "data.train=nowhere/train")
    places = (tmp_path / "nowhere" / "train",)
    refused(answer, 2, "'nowhere/train'", *map(str, places), "data.root=FOLDER", "MANYHEADS_DATA")


def test_missing_known_data(call: Call) -> None:
    """A shipped recipe without its data: where to get them."""
    refused(call("train", "multi30k-en-de-tiny"), 2, "multi30k/train", "github.com/multi30k")
    refused(call("train", "cifar10-vit-tiny"), 2, "cifar10", "huggingface.co")


def test_unequal_line_counts(call: Call, numbers: Path, tmp_path: Path) -> None:
    """Both files with both counts; exit code 1, because the call was right."""
    write_lines(tmp_path / "numbers" / "train.de", ["eins"] * 19)
    refused(call("train", numbers), 1, "train.en has 20 lines", "train.de has 19")


def test_invalid_utf8_in_a_file(call: Call, numbers: Path, tmp_path: Path) -> None:
    """File, line, byte."""
    path = tmp_path / "numbers" / "train.de"
    path.write_bytes(path.read_bytes()[:-5] + b"f\xfcnf\n")
    refused(call("train", numbers), 1, str(path), "line 20", "0xfc", "iconv")


def test_invalid_utf8_on_stdin(call: Call, translator: Path) -> None:
    """Line and byte; how to convert."""
    answer = call("translate", "--model", translator, stdin=b"nine\nein Gru\xdf\n")
    assert answer.code == 1
    assert "manyheads: stdin, line 2: byte 8" in answer.err
    assert "iconv" in answer.err


def test_empty_file(call: Call, numbers: Path, tmp_path: Path) -> None:
    """Named."""
    (tmp_path / "numbers" / "valid.en").write_bytes(b"")
    refused(call("train", numbers), 1, "valid.en is empty")


def test_a_test_split_in_training(call: Call, numbers: Path) -> None:
    """Refused with what it is for."""
    refused(call("train", numbers, "data.train=dates:test"), 2, "test split", "--final")


def test_unreadable_images(call: Call, classifier: Path, tmp_path: Path) -> None:
    """Empty, cut off, of another kind, missing: named, and how many ways there are to be wrong."""
    half(0, 1).save(tmp_path / "half.png")
    whole = (tmp_path / "half.png").read_bytes()
    for name, content in (("empty", b""), ("cut", whole[:50]), ("text", b"hello")):
        path = tmp_path / f"{name}.png"
        path.write_bytes(content)
        refused(call("classify", "--model", classifier, path), 1, str(path), "image")
    refused(call("classify", "--model", classifier, "none.png"), 2, "no file none.png")
    (tmp_path / "nothing").mkdir()
    refused(call("classify", "--model", classifier, "nothing"), 1, "nothing has no images")


def test_an_unreadable_image_in_training(call: Call, halves: Path, tmp_path: Path) -> None:
    """Named with how many there are, before anything is written."""
    path = tmp_path / "halves" / "right" / "007.png"
    path.write_bytes(path.read_bytes()[:30])
    answer = call("train", halves, "--out", "out")
    refused(answer, 1, f"1 of 40 images cannot be read: {path} (not an image", "data.on_error")
    assert not (tmp_path / "out").exists()


def test_no_class_folders(call: Call, halves: Path, tmp_path: Path) -> None:
    """What was expected, by example."""
    (tmp_path / "flat").mkdir()
    half(0, 1).save(tmp_path / "flat" / "a.png")
    refused(call("train", halves, "data.train=flat"), 1, "flat", "one folder of images per class")


# --- Models -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("translate", "--model", "date-en-kr", "x"),
        ("classify", "--model", "date-en-kr", "x.png"),
        ("evaluate", "--model", "date-en-kr"),
        ("look", "date-en-kr", "x"),
        ("info", "date-en-kr"),
    ],
)
def test_unknown_model(call: Call, words: tuple[str, ...]) -> None:
    """By every verb, in the same words."""
    refused(call(*words), 2, "no model 'date-en-kr'", "path of your own")


def test_a_model_of_the_other_kind(call: Call, translator: Path, classifier: Path) -> None:
    """Says which verb would be right."""
    refused(call("translate", "--model", classifier, "x"), 2, "so use `manyheads classify ")
    refused(call("classify", "--model", translator, "x.png"), 2, "so use `manyheads translate ")


def test_a_folder_that_is_no_model(call: Call, tmp_path: Path) -> None:
    """Any folder at hand."""
    refused(call("info", tmp_path), 1, "no manyheads.json")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model", "recipe.toml"])
def test_a_damaged_model(call: Call, own_translator: Path, name: str) -> None:
    """Cut off: named, with a remedy, by every verb that opens it."""
    path = own_translator / name
    path.write_bytes(path.read_bytes()[:-10])
    for words in (("translate", "--model", own_translator, "x"), ("info", own_translator)):
        refused(call(*words), 1, str(path), "sha256 differs", "Copy the folder again")


def test_the_wrong_tokenizer(call: Call, own_translator: Path, tmp_path: Path) -> None:
    """Another model's, with its hash put right: the vocabularies differ."""
    write_numbers(tmp_path, train=20, other=4)
    recipe = write_recipe(tmp_path / "other.toml", TRANSLATE, tmp_path)
    assert call("train", recipe, "tokenizer.size=300", "train.steps=1", "--out", "other").code == 0
    shutil.copy(tmp_path / "other" / "tokenizer.model", own_translator)
    manifest = json.loads((own_translator / "manyheads.json").read_text())
    manifest["sha256"]["tokenizer.model"] = sha256(own_translator / "tokenizer.model")
    (own_translator / "manyheads.json").write_text(json.dumps(manifest))
    refused(
        call("translate", "--model", own_translator, "x"),
        1,
        "tokenizer.model has",
        "belongs to another model",
    )


def test_a_truncated_checkpoint(call: Call, halves: Path, tmp_path: Path) -> None:
    """Nothing is lost: which folder, which file, and how to go on from the older one."""
    assert call("train", halves, "--out", "out").code == 0
    older, newest = sorted((tmp_path / "out" / "state").iterdir())
    path = newest / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    answer = call("train", halves, "--out", "out", "--resume")
    file = "out/state/step-000000004/optimizer.safetensors"
    refused(answer, 1, file, "damaged", f"resume from {older.name}")
    shutil.rmtree(newest)
    assert call("train", halves, "--out", "out", "--resume").code == 0


# --- Calls --------------------------------------------------------------------------------------


def test_a_folder_in_use(call: Call, halves: Path, tmp_path: Path) -> None:
    """Another one is to be chosen."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    refused(call("train", halves, "--out", "out"), 2, "out is not empty, and no run", "--out")


def test_a_file_in_the_way(call: Call, halves: Path, tmp_path: Path) -> None:
    """As run folder, or above it."""
    (tmp_path / "file").write_text("")
    refused(call("train", halves, "--out", "file"), 2, "file is a file")
    refused(call("train", halves, "--out", "file/out"), 1, "file/out")


def test_an_image_that_cannot_be_written(call: Call, translator: Path, tmp_path: Path) -> None:
    """A folder stands where the file should go: said before anything is computed."""
    (tmp_path / "map.png").mkdir()
    refused(call("look", translator, "nine", "--out", "map.png"), 2, "map.png is a folder")


def test_nothing_to_look_at(call: Call, translator: Path, classifier: Path) -> None:
    """An empty sentence, an image that is not there."""
    refused(call("look", translator, "  "), 2, "text is empty")
    refused(call("look", classifier, "none.png"), 2, "no file none.png")


def test_a_split_that_is_not_there(call: Call, own_translator: Path) -> None:
    """The nearest."""
    answer = call("evaluate", "--model", own_translator, "--split", "tests", "--final")
    refused(answer, 2, "'tests'", "did you mean 'test'?")


def test_a_text_that_is_no_text(call: Call, translator: Path) -> None:
    """An argument in another encoding arrives as lone surrogates."""
    answer = call("translate", "--model", translator, "Gru\udcdf")
    refused(answer, 1, "text 1, 'Gru\\udcdf'", "not valid UTF-8")
    for options in ((), ("--shapes",), ("--reference", "x")):
        answer = call("look", translator, "Gru\udcdf", *options)
        refused(answer, 1, "the text 'Gru\\udcdf'", "not valid UTF-8")
    answer = call("look", translator, "nine", "--reference", "neun\udcdf")
    refused(answer, 1, "not valid UTF-8")


def test_a_name_that_is_no_text(call: Call, classifier: Path) -> None:
    """Names of files may be any bytes: the message can be printed all the same."""
    refused(call("look", classifier, "Gru\udcdf.png"), 2, r"no file Gru\udcdf.png")
    refused(call("classify", "--model", classifier, "Gru\udcdf.png"), 2, r"no file Gru\udcdf.png")


def test_an_option_of_another_kind_of_model(
    call: Call, translator: Path, classifier: Path, tmp_path: Path
) -> None:
    """Said, not passed over: an answer without what was asked for would be a wrong one."""
    Image.new("L", (4, 4)).save(tmp_path / "nine.png")
    answer = call("look", translator, "nine", "--baseline", "blur")
    refused(answer, 2, "reads texts", "takes no baseline")
    refused(call("look", translator, "nine.png"), 2, "nine.png is an image", "give a sentence")
    refused(call("look", translator, "nine.png", "--shapes"), 2, "nine.png is an image")
    refused(call("look", classifier, "nine"), 2, "There is no file nine", "looks at images")
    refused(call("look", classifier, "."), 2, ". is a folder: name an image in it")
    refused(call("look", translator, "nine", "--word", ""), 2, "word is empty")


def test_files_that_would_not_be_what_they_say(
    call: Call, translator: Path, tmp_path: Path
) -> None:
    """Figures are a PNG; beside --shapes nothing is written, so nothing may be asked for."""
    answer = call("look", translator, "nine", "--figures", "figures.html")
    refused(answer, 2, "'figures.html' does not say", "ends in .png (an image).")
    answer = call("look", translator, "nine", "--shapes", "--out", "new/a.json", "--target", "x")
    refused(answer, 2, "leave --out and --target out")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("evaluate", "without torchrun, or unset"),
        ("translate", "without torchrun, with --file FILE --workers N, or unset"),
        ("serve", "without torchrun, with --processes N, or unset"),
    ],
)
def test_torchrun_is_for_training(
    call: Call, command: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rank would do the same; help is given all the same, and one process is no torchrun."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    given = ("--model", "digits") if command == "evaluate" else ("digits",)
    refused(call(command, *given), 2, "WORLD_SIZE is 2", f"`manyheads {command}` does", instead)
    assert call(command, "--help").code == 0
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert "WORLD_SIZE" not in call(command, "--no-such-option").err
