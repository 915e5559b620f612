"""Images as people have them: what is found is named, left out or kept together, then trained."""

import csv
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from manyheads.errors import DataError, RecipeError, UsageError
from manyheads.fit import pace
from manyheads.fit.run_training import train
from manyheads.own_data.own_data import prepare
from manyheads.own_data.picture_files import find_pictures
from manyheads.own_data.prepared import Options, Prepared, write
from manyheads.predict.load import load
from manyheads.project.base_recipe import read_recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model

COLOURS = {"red": (200, 40, 40), "green": (40, 180, 60), "blue": (40, 60, 200)}
ONE = Options(minutes=1)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a moment: how fast this machine is plays no part here."""
    monkeypatch.setattr(pace, "BUDGET", 0.01)


def photo(path: Path, colour: str, number: int, size: tuple[int, int] = (48, 40)) -> Path:
    """Save blocks of random brightness in shades of a colour: no two numbers look alike."""
    blocks = np.random.default_rng([number, *map(ord, colour)]).uniform(0.3, 1.2, (9, 9, 1))
    shades = np.clip(blocks * np.array(COLOURS[colour]), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(shades).resize(size, Image.Resampling.BICUBIC).save(path)
    return path


def photos(folder: Path, count: int = 10, name: str = "{colour}/{number:02d}.png") -> Path:
    """Fill a folder with images of three classes."""
    for colour in COLOURS:
        for number in range(count):
            photo(folder / name.format(colour=colour, number=number), colour, number)
    return folder


def kinds(prepared: Prepared) -> dict[str, int]:
    """Count findings."""
    return {each.kind: each.count for each in prepared.findings}


def rows(prepared: Prepared, part: str) -> list[tuple[str, str]]:
    """Names and classes of the images of a part."""
    _, *lines = csv.reader(prepared.files.get(f"{part}.csv", "\n").splitlines())
    return [(Path(path).name, label) for path, label in lines]


def test_five_hundred_photos_on_a_small_scale(tmp_path: Path) -> None:
    """Broken files and copies are all named; two commands later a model answers."""
    folder = photos(tmp_path / "photos", 20)
    for number in range(5):
        (folder / "red" / f"broken{number}.jpg").write_bytes(b"\xff\xd8\xff"[:number])
        shutil.copy(folder / "green" / f"{number:02d}.png", folder / "green" / f"copy{number}.png")
        small = Image.open(folder / "blue" / f"{number:02d}.png").resize((41, 35))
        small.save(folder / "blue" / f"small{number}.jpg", quality=85)
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    prepared = prepare(str(folder), tmp_path / "mine", ONE)
    assert kinds(prepared) == {"unreadable": 5, "duplicate": 5, "near-duplicate": 5}
    parts = {part: rows(prepared, part) for part in ("train", "val", "test")}
    assert sum(map(len, parts.values())) == 65
    for number in range(5):  # an image and the smaller one of it
        pair = {(f"{number:02d}.png", "blue"), (f"small{number}.jpg", "blue")}
        assert any(pair <= set(part) for part in parts.values())
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    write(prepared, tmp_path / "mine")
    recipe = tmp_path / "mine.toml"
    assert all(
        "#" in line for line in prepared.recipe.splitlines() if line.startswith(("steps", "model"))
    )
    changes = ("train.steps=20", "train.validate_every=20", "train.warmup=2")
    line = train(recipe, *changes, out=tmp_path / "run")
    assert line["all"]["accuracy"]["value"] > 60  # three colours, and a model that has seen photos
    model: Any = load(tmp_path / "run")
    assert model(folder / "red" / "00.png") in COLOURS


Make = Callable[[Path], Path]


def in_split_folders(folder: Path) -> Path:
    """Write train, Validation and test with class folders in each."""
    for part, numbers in {"train": range(8), "Validation": (8,), "test": (9,)}.items():
        for colour in COLOURS:
            for number in numbers:
                photo(folder / part / colour / f"{number:02d}.png", colour, number)
    return folder


def listed(folder: Path, text: str, table: str) -> Path:
    """Put images into one folder, and a line for each into a table."""
    photos(folder, name="{colour}{number:02d}.png")
    lines = [
        text.format(name=f"{colour}{number:02d}", colour=colour, folder=folder.name)
        for colour in COLOURS
        for number in range(10)
    ]
    head = "when,breed,file\n" if text.startswith("2024") else ""
    (folder / table).write_text(head + "\n".join(lines) + "\n")
    return folder


FORMS: dict[str, Make] = {
    "folders": photos,
    "folders in a folder": lambda path: photos(path / "all" / "images").parents[1],
    "folders in class folders": lambda path: photos(path, name="{colour}/2024/{number:02d}.png"),
    "upper case": lambda path: photos(path, name="{colour}/{number:02d}.PNG"),
    "parts": in_split_folders,
    "semicolons, no header": lambda path: listed(path, "{name}.png;{colour}", "labels.csv"),
    "tabs, a table beside": lambda path: listed(path, "{folder}/{name}.png\t{colour}", "../x.tsv"),
    "other columns, no endings": lambda path: listed(path, "2024,{colour},{name}", "a.csv"),
    "a table": lambda path: listed(path, "{name}.png,{colour}", "a.csv") / "a.csv",
    "objects": lambda path: listed(
        path, '{{"file_name": "{name}.png", "category": "{colour}"}}', "a.jsonl"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, tmp_path: Path) -> None:
    """Every form gives the same 30 images and classes."""
    prepared = prepare(str(FORMS[form](tmp_path / "in")), tmp_path / "mine", ONE)
    found = [row for part in ("train", "val", "test") for row in rows(prepared, part)]
    assert sorted(label for _, label in found) == sorted([*COLOURS] * 10)
    assert set(kinds(prepared)) <= {"header"}
    if not form.startswith(("folders", "upper", "parts")):
        assert all(name.startswith(label) for name, label in found)
    if form == "parts":
        assert {name for name, _ in rows(prepared, "val")} == {"08.png"}
        assert {name for name, _ in rows(prepared, "test")} == {"09.png"}
    table = tomllib.loads(prepared.recipe)
    assert (table["task"], table["start"]["model"]) == ("classify", "cifar10-cct-2-3x2")


def test_everything_that_an_image_can_have(tmp_path: Path) -> None:
    """Each is named once with what was done, and by its name."""
    folder = photos(tmp_path / "in")
    (folder / "red" / "apple.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(40))
    Image.new("RGB", (40, 40), "white").save(folder / "red" / "white.png")
    Image.new("L", (5, 7)).save(folder / "red" / "dot.png")
    wide = Image.open(photo(folder / "red" / "wide.png", "red", 31)).resize((300, 40))
    wide.save(folder / "red" / "wide.png")
    Image.open(photo(tmp_path / "x.png", "blue", 32)).convert("CMYK").save(folder / "blue/ink.jpg")
    frames = [Image.open(photo(tmp_path / "x.png", "blue", n)).convert("P") for n in (33, 34)]
    frames[0].save(folder / "blue" / "moves.gif", save_all=True, append_images=frames[1:])
    shutil.copy(folder / "red" / "00.png", folder / "blue" / "red.png")
    photo(folder / "grey" / "1.png", "green", 35)
    photo(folder / "loose.png", "green", 36)
    (folder / "nothing").mkdir()
    prepared = prepare(str(folder), tmp_path / "mine", ONE)
    assert kinds(prepared) == {
        "no-label": 1,
        "empty-class": 1,
        "unreadable": 1,
        "blank": 2,  # dot.png, too
        "tiny": 1,
        "long": 1,
        "animated": 1,
        "unusual-mode": 1,
        "conflicting-labels": 1,
        "few-images": 1,
    }
    by_kind = {each.kind: each.examples for each in prepared.findings}
    assert "convert it to JPEG" in by_kind["unreadable"][0]
    assert by_kind["few-images"] == ("grey (1)",)
    used = [row for part in ("train", "val", "test") for row in rows(prepared, part)]
    assert {"white.png", "dot.png", "apple.heic", "red.png", "1.png"}.isdisjoint(dict(used))
    assert ("00.png", "red") not in used  # nobody knows which of the two is right


def test_a_table_and_a_folder_that_do_not_agree(tmp_path: Path) -> None:
    """Rows without an image, images without a row, two rows for one, and an empty cell."""
    folder = listed(tmp_path / "in", "{name}.png,{colour}", "labels.csv")
    lines = (folder / "labels.csv").read_text().splitlines()[1:]
    lines[0], lines[1] = "red01.png,", f"{lines[1]}\n{lines[1].replace('red', 'blue', 2)}"
    lines += ["gone.png,red", "red02.png,green"]
    (folder / "labels.csv").write_text("file,kind\n" + "\n".join(lines) + "\n")
    prepared = prepare(str(folder), tmp_path / "mine", ONE)
    by_kind = {each.kind: [Path(e).name for e in each.examples] for each in prepared.findings}
    assert by_kind["missing-image"] == ["gone.png"]
    assert by_kind["no-label"] == ["red01.png"]
    assert by_kind["unlisted-image"] == ["red00.png"]
    assert by_kind["repeated-row"] == ["red02.png (red and green)"]
    assert sum(len(rows(prepared, part)) for part in ("train", "val", "test")) == 28


def test_several_classes_an_image(tmp_path: Path) -> None:
    """Cells whose parts occur elsewhere are several labels; validation measures mAP."""
    folder = listed(tmp_path / "in", "{name}.png,{colour}|any", "labels.csv")
    prepared = prepare(str(folder), tmp_path / "mine", ONE)
    table = tomllib.loads(prepared.recipe)
    assert table["data"]["multi_label"]
    assert table["train"]["early_stop"]["metric"] == "val_map"
    assert {label for _, label in rows(prepared, "train")} <= {f"{each};any" for each in COLOURS}


def test_few_validation_images_are_judged_by_the_loss(tmp_path: Path) -> None:
    """Accuracy is the same in too many validations: the first of them would be kept."""
    prepared = prepare(str(photos(tmp_path / "in", 12)), tmp_path / "mine", ONE)
    assert tomllib.loads(prepared.recipe)["train"]["early_stop"]["metric"] == "val_loss"


def test_captions(tmp_path: Path) -> None:
    """One text or several an image; a missing image and a broken line are named; it trains."""
    photos(tmp_path / "img", 4)
    lines = [
        {
            "file": f"img/{colour}/{number:02d}.png",
            "text": [f"a {colour} image with the number {number}", f"{colour} &amp; {number}"],
        }
        for colour in COLOURS
        for number in range(4)
    ]
    lines.append({"file": "img/red/gone.png", "text": ["a red image that is not there"]})
    path = tmp_path / "captions.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n{broken\n")
    prepared = prepare(str(path), tmp_path / "mine", ONE)
    assert kinds(prepared) == {"missing-image": 1, "invalid-record": 1}
    written = [json.loads(line) for line in prepared.files["train.jsonl"].splitlines()]
    assert all(len(each["en"]) == 2 and " & " in each["en"][1] for each in written)
    write(prepared, tmp_path / "mine")
    changes = ("train.steps=2", "train.validate_every=2", "train.warmup=1")
    line = train(tmp_path / "mine.toml", *changes, out=tmp_path / "run")
    assert line["images"] == len(prepared.files["val.jsonl"].splitlines())


def test_a_column_for_each_class(tmp_path: Path) -> None:
    """With 1 where an image is of it; several make several classes."""
    folder = photos(tmp_path / "in", 4, "{colour}{number:02d}.png")
    names = sorted(each.name for each in folder.iterdir())
    lines = ["file,warm,cold", *(f"{name},{n % 2},{1 - n % 2}" for n, name in enumerate(names))]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    found = find_pictures(folder, ())
    assert [each.labels for each in found.pictures[:2]] == [("cold",), ("warm",)]
    assert not found.multi_label
    (folder / "labels.csv").write_text("\n".join([*lines[:2], f"{names[1]},1,1", *lines[3:]]))
    found = find_pictures(folder, ())
    assert (found.multi_label, found.pictures[1].labels) == (True, ("warm", "cold"))


def test_numbers_of_another_table_name_no_images(tmp_path: Path) -> None:
    """A table beside the folder, most of whose rows have no image."""
    for number, colour in enumerate(COLOURS):
        photo(tmp_path / "in" / f"{number}.png", colour, number)
    (tmp_path / "pairs.csv").write_text("id,text\n" + "".join(f"{n},a b\n" for n in range(50)))
    with pytest.raises(DataError, match="nothing says of which class"):
        find_pictures(tmp_path / "in", ())


def test_captions_that_repeat_with_images_in_a_folder_beside(tmp_path: Path) -> None:
    """They are named as captions, so they are no classes; the folder is found by its images."""
    photos(tmp_path / "photos", 5, "{colour}{number:02d}.png")
    photos(tmp_path / "older", 2, "{colour}{number:02d} old.png")
    names = [f"{colour}{number:02d}.png" for colour in COLOURS for number in range(5)]
    lines = [{"file": name, "caption": f"it is {name[:3]}"} for name in names]
    path = tmp_path / "list.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    found = find_pictures(path, ())
    assert (found.captions, len(found.pictures), found.findings) == (True, len(names), [])
    path.write_text(json.dumps({"file": "gone.png", "caption": "it is gone"}) + "\n")
    with pytest.raises(DataError, match=r"gone\.png.* Give the folder of the images, with the"):
        find_pictures(path, ())


def test_captions_beside_images_and_by_language(tmp_path: Path) -> None:
    """.txt files beside images; columns by the codes of their languages."""
    folder = photos(tmp_path / "in", 3, "{colour}{number:02d}.png")
    table = ["name\tenglish\tdeutsch"]
    for path in sorted(folder.iterdir()):
        path.with_suffix(".txt").write_text(f"this is the image that I call {path.stem}\n")
        table.append(f"{path.name}\tthe image {path.stem}\tdas Bild {path.stem}")
    texts = prepare(str(folder), tmp_path / "mine", ONE)
    first = json.loads(texts.files["train.jsonl"].splitlines()[0])
    assert first["en"] == [f"this is the image that I call {Path(first['image']).stem}"]
    (folder / "all.tsv").write_text("\n".join(table) + "\n")
    both = Options(minutes=1, columns=("name", "en=english", "de=3"))
    prepared = prepare(str(folder / "all.tsv"), tmp_path / "mine", both)
    first = json.loads(prepared.files["train.jsonl"].splitlines()[0])
    assert first["de"] == [f"das Bild {Path(first['image']).stem}"]
    assert tomllib.loads(prepared.recipe)["data"]["texts"] == {"en": ["en"], "de": ["de"]}


def empty(path: Path) -> Path:
    """A folder of one text."""
    path.mkdir()
    (path / "notes.txt").write_text("nothing here")
    return path


def broken(path: Path) -> Path:
    """A class of empty files."""
    for number in range(3):
        photo(path / "red" / f"{number}.png", "red", number).write_bytes(b"")
    return path


REFUSED: dict[str, tuple[Make, str]] = {
    "no images": (empty, "has no images"),
    "no classes": (lambda path: photos(path, name="{colour}{number}.png"), "of which class"),
    "one class folder": (
        lambda path: photo(path / "red" / "1.png", "red", 1).parents[1],
        "at least two classes",
    ),
    "two images": (lambda path: photos(path, 1), "at least two classes of 3 images"),
    "one image": (lambda path: photo(path / "1.png", "red", 1), "is one image"),
    "all broken": (broken, "none of 3 images"),
    "a table without images": (
        lambda path: listed(path, "lost/{name}.jpg,{colour}", "labels.csv") / "labels.csv",
        "none of the images",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_learned_from_is_refused(what: str, tmp_path: Path) -> None:
    """With the next step."""
    make, told = REFUSED[what]
    with pytest.raises((DataError, UsageError), match=told):
        prepare(str(make(tmp_path / "in")), tmp_path / "mine", ONE)


def test_other_models_to_start_from(tmp_path: Path) -> None:
    """Its image size is kept; a captioner is no start of a classifier."""
    folder = photos(tmp_path / "in")
    prepared = prepare(str(folder), tmp_path / "mine", Options(minutes=1, start="digits"))
    table = tomllib.loads(prepared.recipe)
    assert table["start"]["model"] == "digits"
    write(prepared, tmp_path / "mine")
    recipe: Any = read_recipe(tmp_path / "mine.toml")
    assert (recipe.image.height, recipe.image.mode) == (8, "L")


def test_a_captioner_is_continued(tmp_path: Path) -> None:
    """With its vocabulary and weights; another language, or a classifier, is refused."""
    photos(tmp_path / "in", 3, "{colour}{number:02d}.png")
    for path in (tmp_path / "in").iterdir():
        path.with_suffix(".txt").write_text(f"this is the image that I call {path.stem}\n")
    start = Options(minutes=1, start="emoji-caption")
    write(prepare(str(tmp_path / "in"), tmp_path / "mine", start), tmp_path / "mine")
    frozen = ("train.learning_rate=1e-9", "train.weight_decay=0", "train.steps=1")
    train(tmp_path / "mine.toml", *frozen, "train.validate_every=1", out=tmp_path / "run")
    old, new = (ModelFolder(find_model(name)) for name in ("emoji-caption", str(tmp_path / "run")))
    weights = dict(old.model().named_parameters())
    for name, tensor in new.model().named_parameters():
        torch.testing.assert_close(tensor, weights[name], atol=1e-3, rtol=0)
    assert (new.path / "tokenizer.model").read_bytes() == (
        old.path / "tokenizer.model"
    ).read_bytes()
    with pytest.raises(RecipeError, match="not a captioner"):
        prepare(str(tmp_path / "in"), tmp_path / "mine", Options(start="digits"), force=True)
    for path in (tmp_path / "in").glob("*.txt"):
        path.write_text(f"это картинка, которую я называю {path.stem}\n")
    with pytest.raises(DataError, match="texts in ru"):
        prepare(str(tmp_path / "in"), tmp_path / "mine", start, force=True)


def test_minutes_decide_on_the_steps(tmp_path: Path) -> None:
    """More of them, up to what the images are worth; classes of unequal size are weighed."""
    folder = photos(tmp_path / "in", 4)
    for number in range(100, 150):
        photo(folder / "red" / f"{number}.png", "red", number)
    steps = []
    for minutes in (1, 1000):
        prepared = prepare(str(folder), tmp_path / "mine", Options(minutes=minutes))
        table = tomllib.loads(prepared.recipe)["train"]
        steps.append(table["steps"])
        assert table["class_weights"] == "balanced"
        assert table["steps"] % table["validate_every"] == 0
    assert steps[0] <= steps[1] == 200


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU would be timed")
def test_a_gpu_that_is_elsewhere(tmp_path: Path) -> None:
    """Nothing is timed, and the recipe validates all the same."""
    prepared = prepare(str(photos(tmp_path / "in")), tmp_path / "mine", Options(hardware="gpu"))
    table = tomllib.loads(prepared.recipe)["train"]
    assert (table["steps"], table["validate_every"], table["precision"]) == (200, 20, "auto")
    assert any("not timed" in line for line in prepared.recipe.splitlines())
