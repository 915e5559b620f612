"""No command destroys a file that it was given, or one that was there before."""

import json
import os
import re
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from manyheads.errors import UsageError
from manyheads.files import sha256
from manyheads.looking.look_inside import look
from manyheads.project import plugins
from tests.cli.conftest import Call
from tests.cli.test_bad_input import refused
from tests.made import CLASSIFY, half, write_halves, write_lines, write_numbers, write_recipe

READ = "would be written over, but it is read from"


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may become larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def content(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


# --- Inputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output", ["n/valid.de", "n/../n/train.en", "linked", "hard", "own-translator/labels", "p.py"]
)
def test_evaluate_writes_its_outputs_over_no_input(
    call: Call,
    own_translator: Path,
    tmp_path: Path,
    output: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not over the data, those of other splits, the model or a plugin, by any name."""
    write_numbers(tmp_path, train=4, other=4)
    (tmp_path / "numbers").rename(tmp_path / "n")
    recipe = own_translator / "recipe.toml"
    text = recipe.read_text().replace("numbers/", f"{tmp_path}/n/")
    recipe.write_text(text)
    manifest = json.loads((own_translator / "manyheads.json").read_text())
    manifest["sha256"]["recipe.toml"] = sha256(recipe)
    (own_translator / "manyheads.json").write_text(json.dumps(manifest))
    (tmp_path / "linked").symlink_to("n/valid.en")
    (tmp_path / "hard").hardlink_to(own_translator / "model.safetensors")
    (own_translator / "labels").symlink_to("../n/test.de")
    (tmp_path / "p.py").write_text("# mine")
    monkeypatch.delitem(sys.modules, "p", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(plugins, "LOADED", {})
    before = content(tmp_path)
    answer = call(
        *("evaluate", "--model", own_translator, "--data", "n/valid", "--plugin", "p.py"),
        *("--outputs", output),
    )
    refused(answer, 2, output, "is a file: name a folder for --outputs")
    assert content(tmp_path) == before


def test_evaluate_draws_over_no_image(call: Call, own_classifier: Path, tmp_path: Path) -> None:
    """That it is measured on."""
    write_halves(tmp_path, count=4)
    half(0, 1).save(tmp_path / "halves" / "left" / "confusion.png")
    before = content(tmp_path / "halves")
    answer = call("evaluate", "--model", own_classifier, "--data", "halves", "--plots=halves/left")
    refused(answer, 2, "halves/left/confusion.png", READ)
    assert content(tmp_path / "halves") == before


@pytest.mark.parametrize("option", ["--out", "--figures"])
def test_look_draws_over_no_input(
    call: Call, own_classifier: Path, tmp_path: Path, option: str
) -> None:
    """Neither the image nor the model; beside the model it may write, and twice."""
    half(0, 1).save(tmp_path / "a.png")
    (tmp_path / "b.png").symlink_to("a.png")
    (own_classifier / "c.png").hardlink_to(own_classifier / "recipe.toml")
    before = content(tmp_path)
    for output in ("a.png", "own-classifier/../a.png", "b.png", "own-classifier/c.png"):
        refused(call("look", own_classifier, "a.png", option, output), 2, output, READ)
    refused(call("look", own_classifier, "b.png", option, "a.png"), 2, "a.png", READ)
    refused(call("look", own_classifier, "a.png", "--out", "own-classifier/labels.json"), 2, READ)
    assert content(tmp_path) == before
    for _ in range(2):
        assert call("look", own_classifier, "a.png", "--out", "own-classifier/look.json").code == 0


def test_look_saves_over_no_input(classifier: Path, tmp_path: Path) -> None:
    """From Python as well."""
    half(0, 1).save(tmp_path / "a.png")
    before = content(tmp_path)
    found = look(classifier, tmp_path / "a.png")
    with pytest.raises(UsageError, match=READ):
        found.save(tmp_path / "a.png")
    assert content(tmp_path) == before


def test_translate_writes_over_no_input(call: Call, own_translator: Path, tmp_path: Path) -> None:
    """The document, the glossary, the model."""
    (tmp_path / "a.txt").write_text("nine\n")
    (tmp_path / "g.tsv").write_text("nine\tneun\n")
    (tmp_path / "h.tsv").hardlink_to(tmp_path / "g.tsv")
    before = content(tmp_path)
    for output in ("a.txt", "g.tsv", "h.tsv", "own-translator/tokenizer.model"):
        words = ("--file", "a.txt", "--glossary", "g.tsv", "--out", output)
        refused(call("translate", "--model", own_translator, *words), 2, output, READ)
    assert content(tmp_path) == before


def test_doctor_draws_over_no_part_of_a_run(
    call: Call, own_classifier: Path, tmp_path: Path
) -> None:
    """Also by another name."""
    state = next((own_classifier / "state").glob("*/model.safetensors"))
    (tmp_path / "a.png").hardlink_to(state)
    refused(call("doctor", own_classifier, "--plot", "a.png"), 2, "a.png", READ)


def test_check_data_leaves_files_of_others(call: Call, tmp_path: Path) -> None:
    """A file beside the new one, whatever its ending."""
    write_lines(tmp_path / "a.tsv", ["one\teins", "two\tzwei", "three\tdrei"])
    mine = [f"new.tsv{ending}" for ending in (".part", ".tmp", ".log.jsonl.part")]
    for name in mine:
        (tmp_path / name).write_text("mine")
    assert call("check-data", "a.tsv", "--fix", "new.tsv").code == 0
    assert (tmp_path / "new.tsv").exists()
    assert [(tmp_path / name).read_text() for name in mine] == ["mine"] * 3


# --- Full disks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["html", "png", "json"])
def test_look_on_a_full_disk(call: Call, translator: Path, tmp_path: Path, ending: str) -> None:
    """The earlier page is still there, and nothing else."""
    (tmp_path / f"look.{ending}").write_text("earlier")
    with full_disk(2000):
        answer = call("look", translator, "nine", "--out", f"look.{ending}")
    assert answer.code == 1
    assert f"manyheads: look.{ending} cannot be written: file too large." in answer.err
    assert content(tmp_path) == {f"look.{ending}": b"earlier"}


@pytest.mark.parametrize("size", [100, 900, 3000])
def test_training_on_a_full_disk(call: Call, tmp_path: Path, size: int) -> None:
    """Whatever does not fit: a message that says from where to go on; with room, it goes on."""
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    command = ("train", recipe, "--out", "out", "train.steps=20")
    with full_disk(size):
        answer = call(*command)
    assert answer.code == 1
    assert "Traceback" not in answer.err
    assert re.search(r"cannot be written: .*file too large", answer.err, re.IGNORECASE)
    assert list((tmp_path / "out").rglob(".manyheads-*")) == []
    resume = ["--resume"] if (tmp_path / "out" / "recipe.toml").exists() else []
    if resume:
        assert "No step is saved yet." in answer.err
    assert call(*command, *resume).code == 0


def test_converting_on_a_full_disk(call: Call, translator: Path, tmp_path: Path) -> None:
    """There is no folder that looks like a model."""
    with full_disk(2000):
        answer = call("convert", "to-marian", translator, "out")
    assert answer.code == 1
    assert "model.safetensors cannot be written: file too large." in answer.err
    assert content(tmp_path) == {}


def test_cleaning_on_a_full_disk(call: Call, tmp_path: Path) -> None:
    """Neither half of the files."""
    write_lines(tmp_path / "a.en", [f"the number {n} of many" for n in range(300)])
    write_lines(tmp_path / "a.de", [f"die Nummer {n} von vielen" for n in range(300)])
    before = content(tmp_path)
    for output in ("new", "new.gz", "new.csv"):
        with full_disk(200):
            words = ("--source", "en", "--target", "de", "--fix", output)
            answer = call("check-data", "a", *words)
        assert answer.code == 1
        assert "cannot be written: file too large." in answer.err
        assert content(tmp_path) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_device_that_is_full(call: Call, translator: Path, tmp_path: Path) -> None:
    """Said after the work, as it can only be known then."""
    (tmp_path / "a.txt").write_text("nine\n")
    answer = call("translate", "--model", translator, "--file", "a.txt", "--out", "/dev/full")
    refused(answer, 1, "/dev/full cannot be written: no space left on device.")


# --- Names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("classify", ""),
        ("classify", "--model", ""),
        ("translate", "--file", ""),
        ("translate", "--glossary="),
        ("train", ""),
        ("train", "digits", "--out", ""),
        ("train", "digits", ""),
        ("evaluate", "--data", ""),
        ("evaluate", "--outputs", ""),
        ("compare", "digits", ""),
        ("look", "", "x"),
        ("look", "digits", "x.png", "--out", ""),
        ("doctor", ""),
        ("fetch", "multi30k", "--from", ""),
        ("check-data", ""),
        ("check-data", "a.tsv", "--fix", ""),
        ("lab", "scale", "--out", ""),
        ("convert", "timm", "", "out"),
        ("convert", "to-marian", "digits", ""),
    ],
)
def test_an_empty_name_is_no_name(call: Call, tmp_path: Path, words: tuple[str, ...]) -> None:
    """As a path it would be the current folder."""
    refused(call(*words), 2, "is empty: give it a value")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_text_is_a_text(call: Call, translator: Path) -> None:
    """And its translation as well."""
    assert call("translate", "--model", translator, "") == (0, "\n", "")


@pytest.mark.parametrize("name", ["~nosuchuser/x", "a**b", "[red]x[/foo]", "{x}", "%s", ":cat:"])
def test_names_that_mean_something_elsewhere(call: Call, name: str, tmp_path: Path) -> None:
    """To a shell, to a pattern, to what draws tables: here they are names."""
    for words in (
        ("classify", name),
        ("translate", "--model", name, "x"),
        ("translate", "--glossary", name, "x"),
        ("evaluate", "--data", name),
        ("check-data", name, "--source", "en", "--target", "de"),
        ("check-data", name, "--images"),
        ("advise", name),
        ("train", "digits", f"data.train={name}"),
        ("convert", "hf", name, "out"),
        ("convert", "marian", name, "out"),
        ("fetch", "multi30k", "--from", name),
    ):
        answer = call(*words)
        assert answer.code == 2
        assert name in answer.err
        assert "Traceback" not in answer.err


def test_a_run_in_a_folder_whose_name_is_markup(call: Call, tmp_path: Path) -> None:
    """It is shown as it is, by the progress, the tables and the figure."""
    folder = tmp_path / r"[red]$\foo$[/b]"
    write_halves(folder)
    recipe = write_recipe(folder / "halves.toml", CLASSIFY, folder)
    words = ("train", recipe, "--out", folder / "out", "train.steps=4", "train.validate_every=2")
    answer = call(*words, f"data.train={folder}/halves")
    assert answer.code == 0
    assert f"reading {folder}/halves" in answer.err
    (folder / "out").rename(folder / r"$\bar$")
    answer = call("doctor", folder / r"$\bar$", "--plot", "a.png")
    assert r"$\bar$" in answer.out
    assert (tmp_path / "a.png").exists()


def test_images_whose_names_are_not_utf_8(call: Call, tmp_path: Path) -> None:
    """They are read, drawn and named; a class or a recipe cannot have such a name."""
    write_halves(tmp_path)
    halves = tmp_path / "halves"
    (halves / "left").rename(halves / r"$\x")  # no formula
    (halves / "right" / "001.png").rename(halves / "right" / os.fsdecode(b"\xfe.png"))
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    options = ("train.steps=4", "train.validate_every=2")
    assert call("train", recipe, "--out", "out", "--json", *options).code == 0
    name = os.fsdecode(b"halves/right/\xfe.png")
    answer = call("classify", "--model", "out", "--json", name)
    found = json.loads(answer.out)
    assert found["path"] == name
    assert {each["label"] for each in found["classes"]} == {r"$\x", "right"}
    assert call("check-data", "halves", "--json").code == 0
    assert (
        call("evaluate", "--model", "out", "--data", "halves", "--plots", "p", "--json").code == 0
    )
    for output in (os.fsdecode(b"\xfd.html"), "look.json"):
        assert call("look", "out", name, "--out", output, "--json").code == 0
    assert json.loads((tmp_path / "look.json").read_text())["path"] == name
    shutil.move("halves", os.fsdecode(b"\xff"))
    answer = call("train", recipe, "--out", "o", *options, os.fsdecode(b"data.train=\xff"))
    refused(answer, 2, r"data.train = '", r"\udcff' is not valid UTF-8", "rename")
    moved = os.fsdecode(b"\xff/\xfe")
    Path(os.fsdecode(b"\xff/right")).rename(moved)
    refused(call("advise", os.fsdecode(b"\xff")), 1, "is not UTF-8: rename it")


# --- Numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("length-penalty", "1e308"),
        ("length-penalty", "nan"),
        ("coverage", "inf"),
        ("diverse", "1e308"),
        ("temperature", "nan"),
        ("temperature", "1e-308"),
        ("temperature", "1e308"),
        ("top-p", "nan"),
        ("top-k", "0"),
        ("beam", str(10**9)),
        ("beam", "9" * 5000),
        ("beam", "1.5"),
        ("n-best", str(10**9)),
        ("threads", "-1"),
        ("threads", str(10**9)),
        ("seed", "-1"),
        ("no-repeat-ngram", "-1"),
    ],
)
def test_numbers_that_cannot_work(call: Call, option: str, value: str) -> None:
    """Said before a model is loaded."""
    answer = call("translate", "--model", "nosuch", f"--{option}={value}", "x")
    assert (answer.code, answer.out) == (2, "")
    assert f"--{option}" in answer.err.replace("\n", "")
    assert "nosuch" not in answer.err


def test_an_image_size_that_cannot_work(call: Call) -> None:
    """More digits than Python reads."""
    answer = call("convert", "timm", "x.pth", "out", "--image-size", "9" * 5000)
    refused(answer, 2, "--image-size is '999", "give pixels")


def test_a_change_without_a_key(call: Call) -> None:
    """It would change nothing, and train."""
    refused(call("train", "digits", "="), 2, "'=' is not of the form key=value")
