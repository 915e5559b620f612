"""Advice from a table of measured runs; none where the table has nothing to say."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from manyheads.data.images.digits import read_digits
from manyheads.errors import DataError
from manyheads.fit import recommendation as module
from manyheads.fit.recommendation import (
    Advice,
    Facts,
    Machine,
    Row,
    advise,
    look,
    measured,
    recommend,
)
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import shipped
from manyheads.recipe_data.image_data import LabelledImageData
from tests.made import CLASSES, write_halves

PHOTOS = LabelledImageData(train="photos")
SHARDS = LabelledImageData(train="photos.tar")  # which `init` does not read
LAPTOP = Machine(2, 8.0, None)
DIGITS = measured()[0]
ROW = replace(
    DIGITS,
    recipe="cifar10-vit-tiny",
    data="made",
    images=10_000,
    side=32,
    grey=False,
    accuracy=80,
    low=79,
    high=82,
)
CNN = replace(ROW, family="cnn", accuracy=85, low=84, high=86)
FACTS = Facts(
    images=8000,
    classes=8,
    per_class=1000,
    rarest=900,
    most=1100,
    side=40,
    channels=3,
    multi_label=False,
    unreadable=0,
)


def test_every_row_is_a_shipped_recipe_with_a_figure() -> None:
    """Rows stand for runs of ours: nothing in the table without its recipe and its protocol."""
    for row in measured():
        assert row.recipe in shipped("recipes")
        assert row.low <= row.accuracy <= row.high <= 100
        assert row.protocol
        assert row.hardware


def test_digits_are_like_digits() -> None:
    """The table's own data, from a look at the images."""
    facts = look(read_digits())
    assert (facts.images, facts.classes, facts.side, facts.channels) == (1797, 10, 8, 1)
    advice = recommend(LabelledImageData(train="digits"), facts, LAPTOP, measured())
    assert advice.recipe == "digits"
    assert advice.expected is not None
    low, high = advice.expected
    assert low < 98.55 < high <= 100
    assert "98.55%" in " ".join(advice.reasons)
    assert advice.command.startswith("manyheads train digits data.train=digits data.hold_out=179")


def test_use_a_cnn() -> None:
    """The best of what was measured on data like these, whatever it is."""
    advice = recommend(PHOTOS, FACTS, LAPTOP, [DIGITS, ROW, CNN])
    assert (advice.family, len(advice.rows)) == ("cnn", 2)
    assert any("Use a CNN" in reason for reason in advice.reasons)
    assert advice.expected == (68.0, 93.0)  # twice, and half, the error


def test_nothing_is_expected_below_chance() -> None:
    """Twice the error of 40% would be 120%: by chance, one image of eight is right."""
    poor = replace(CNN, accuracy=45, low=40, high=50)
    assert recommend(PHOTOS, FACTS, LAPTOP, [poor]).expected == (12.5, 75.0)


def test_the_best_takes_too_long() -> None:
    """A Transformer was better, in a week: the sentence does not call the CNN the best of all."""
    slow = replace(ROW, accuracy=95, low=95, high=95, minutes=10_000)
    advice = recommend(PHOTOS, FACTS, LAPTOP, [slow, CNN])
    assert advice.family == "cnn"
    (said,) = [reason for reason in advice.reasons if "Use a CNN" in reason]
    assert said.endswith("the best of what finishes here in half a day.")


def test_a_gpu_is_only_counted_on_where_there_is_one() -> None:
    """A row measured on a GPU does not speak for a laptop."""
    fast = replace(CNN, gpu=True, accuracy=95, low=95, high=95)
    assert recommend(PHOTOS, FACTS, LAPTOP, [ROW, fast]).rows == [ROW]
    server = Machine(16, 128.0, "some GPU", 24.0)
    assert fast in recommend(PHOTOS, FACTS, server, [ROW, fast]).rows


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, side=224),
        replace(FACTS, per_class=20.0),
        replace(FACTS, classes=1000),
        replace(FACTS, channels=1),
        replace(FACTS, rarest=5, most=3000),
        replace(FACTS, multi_label=True),
        # Photos as few a class as digits has of each: digits' recipe is for 8 x 8 pixels.
        replace(FACTS, images=1500, per_class=150.0, side=500),
    ],
)
def test_nothing_near(facts: Facts) -> None:
    """Reported, and no figure given: `init` measures, or a recipe where it cannot read the data."""
    advice = recommend(SHARDS, facts, LAPTOP, [DIGITS, ROW])
    assert (advice.expected, advice.rows) == (None, [])
    assert (advice.recipe, advice.family) == ("photos-resnet-18", "cnn")
    assert any("Nothing like these data was measured" in reason for reason in advice.reasons)
    assert settings(advice) <= {"data", "image", "model", "train"}
    assert recommend(SHARDS, facts, LAPTOP, []).recipe == "photos-resnet-18"
    table = recommend(LabelledImageData(train="photos.csv"), facts, LAPTOP, [DIGITS, ROW])
    assert (table.recipe, table.expected) == (None, None)
    assert table.command == "manyheads init photos.csv && manyheads train mine.toml"


def settings(advice: Advice) -> set[str]:
    """The tables that a command changes, as a shell reads it and a recipe accepts it."""
    manyheads, train, recipe, *changes = shlex.split(advice.command)
    assert (manyheads, train) == ("manyheads", "train")
    read_recipe(shipped("recipes")[recipe], changes)
    return {change.partition(".")[0] for change in changes}


def test_channels_of_the_files_are_kept() -> None:
    """Grey images are read as grey, others by their number of channels."""
    grey = recommend(SHARDS, replace(FACTS, side=28, channels=1), LAPTOP, [])
    assert "image.mode=L" in grey.command
    assert settings(grey) == {"data", "image"}
    bands = recommend(SHARDS, replace(FACTS, channels=7), LAPTOP, [])
    assert "image.mode=bands image.num_channels=7" in bands.command
    assert settings(bands) == {"data", "image"}


def test_a_run_that_takes_days_here_comes_last() -> None:
    """Measured on many cores: the time that it takes on these is said, and counted."""
    slow = replace(ROW, accuracy=90, low=90, high=90, threads=64, minutes=60.0, recipe="digits")
    advice = recommend(PHOTOS, FACTS, LAPTOP, [ROW, slow])
    assert advice.recipe == ROW.recipe
    assert any("1920 on this machine's cores" in reason for reason in advice.reasons)
    assert recommend(PHOTOS, FACTS, Machine(64, 64.0, None), [ROW, slow]).recipe == "digits"


@pytest.mark.parametrize("name", ["my photos", "2024", "it's"])
def test_the_command_can_be_pasted(name: str) -> None:
    """A shell sees one word, a recipe the name."""
    data = LabelledImageData(train=name, label="what it is")
    advice = recommend(data, FACTS, LAPTOP, [CNN])
    settings(advice)
    _, _, recipe, *changes = shlex.split(advice.command)
    read: Any = read_recipe(shipped("recipes")[recipe], changes)
    assert (read.data.train, read.data.label) == (name, "what it is")


@pytest.mark.parametrize("form", ["table", "list"])
def test_several_labels(form: str, tmp_path: Path) -> None:
    """As a list of them, or in a text with separators."""
    write_halves(tmp_path, count=4)
    names = [f"halves/{c}/{n:03d}.png" for n, c in enumerate(CLASSES * 2)]
    labels = [["left"], ["right"], ["left", "right"], []]
    path = tmp_path / ("list.jsonl" if form == "list" else "list.csv")
    if form == "list":
        rows = [json.dumps({"image": n, "label": v}) for n, v in zip(names, labels, strict=True)]
    else:
        rows = [f"{n},{';'.join(v) or 'left'}" for n, v in zip(names, labels, strict=True)]
        rows.insert(0, "image,label")
    path.write_text("\n".join(rows) + "\n")
    advice = advise(str(path), multi_label=True)
    assert (advice.facts.multi_label, advice.facts.classes) == (True, 2)
    assert advice.command.startswith("manyheads init ")
    assert any("mean average precision" in reason for reason in advice.reasons)


def test_a_missing_label_is_still_a_mistake(tmp_path: Path) -> None:
    """Not an image without any of several labels."""
    write_halves(tmp_path, count=2)
    path = tmp_path / "list.csv"
    path.write_text("image,label\nhalves/left/000.png,left\nhalves/right/001.png,\n")
    with pytest.raises(DataError, match="has no label"):
        advise(str(path))


def test_palettes_are_colours() -> None:
    """An image of numbered colours is not grey; transparency is laid on white."""
    kinds = {"P": 3, "L": 1, "LA": 1, "RGBA": 3, "CMYK": 3, "I;16": 1}
    for mode, channels in kinds.items():
        images = replace(read_digits(), read=lambda _, m=mode: Image.new(m, (9, 7)))  # type: ignore[misc]
        facts = look(images)
        assert (facts.channels, facts.side) == (channels, 7), mode


def test_a_run_that_was_stopped_promises_nothing() -> None:
    """What it reached is a lower limit."""
    advice = recommend(PHOTOS, FACTS, LAPTOP, [replace(ROW, finished=False)])
    assert advice.expected is None
    assert any("expect more" in reason for reason in advice.reasons)


def test_unequal_classes_are_weighed() -> None:
    """In the command, with the reason; rows of equal classes do not speak for them."""
    advice = recommend(SHARDS, replace(FACTS, rarest=5, most=3000), LAPTOP, [ROW])
    assert "train.class_weights=balanced" in advice.command
    assert any("The rarest class has 5" in reason for reason in advice.reasons)
    assert advice.expected is None


def test_images_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted and looked at; a few that cannot be read are mentioned, all of them refused."""
    write_halves(tmp_path)
    bad = sorted((tmp_path / "halves").rglob("*.png"))
    bad[0].write_bytes(b"")
    advice = advise(str(tmp_path / "halves"))
    assert (advice.facts.images, advice.facts.unreadable, advice.facts.side) == (40, 1, 4)
    assert any("cannot be read" in reason for reason in advice.reasons)
    assert advice.command == f"manyheads init {tmp_path / 'halves'} && manyheads train mine.toml"
    for path in bad:
        path.write_bytes(b"")
    with pytest.raises(DataError, match="none of 40 images"):
        advise(str(tmp_path / "halves"))
    assert module.this_machine().cores >= 1


def test_unreadable_images_do_not_stop_the_command() -> None:
    """Two of those looked at, or any of those not looked at, would stop training at its start."""
    for facts in (replace(FACTS, unreadable=2, images=150), replace(FACTS, images=201)):
        assert "data.on_error=skip" in recommend(PHOTOS, facts, LAPTOP, [CNN]).command
    seen = replace(FACTS, images=200)
    assert "on_error" not in recommend(PHOTOS, seen, LAPTOP, [CNN]).command


def test_rows_have_a_size_by_class() -> None:
    """Images a class."""
    assert Row(**{**DIGITS.__dict__}).per_class == pytest.approx(143.7)
