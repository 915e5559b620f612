"""Classifiers from one another: another start, a teacher, several labels, what cannot be read."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from manyheads import load
from manyheads.data.images.digits import read_digits
from manyheads.errors import DataError, InterruptedRunError, RecipeError
from manyheads.fit.run_training import train
from manyheads.measure.stored_model import evaluate
from manyheads.project.base_recipe import read_recipe
from manyheads.tasks.classify.distil import Teacher
from manyheads.tasks.classify.evaluation import measure
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.reconstruct.predictor import Reconstruction
from tests.made import CLASSES, CLASSIFY, Silent, half, read_jsonl, run, write_halves, write_recipe
from tests.remarks import remarks

RECONSTRUCT = CLASSIFY.replace('"classify"', '"reconstruct"')
SHORT = ("train.steps=4", "train.warmup=1", "train.validate_every=4", "train.log_every=2")


class Listening(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said = ""

    def say(self, message: str) -> None:
        self.said += f"{message}\n"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    write_halves(tmp_path)
    return write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


# --- Learning without labels, fine-tuning, a probe ----------------------------------------------


def test_reconstruct_then_fine_tune_then_probe(recipe: Path, tmp_path: Path) -> None:
    """What was learned without labels is where a classifier begins; a probe leaves it as it is."""
    first = write_recipe(tmp_path / "masked.toml", RECONSTRUCT, tmp_path)
    line = run(first, tmp_path / "masked", "train.steps=60", "train.validate_every=20")
    losses = [
        each["val_loss"]
        for each in read_jsonl(tmp_path / "masked/metrics.jsonl")
        if "val_loss" in each
    ]
    assert losses[-1] < 0.9 * losses[0]
    assert line["value"] == pytest.approx(losses[-1], rel=1e-4)
    predictor = load(tmp_path / "masked")
    assert isinstance(predictor, Reconstruction)
    assert evaluate(predictor)["value"] == pytest.approx(line["value"])

    start = f"start.model={tmp_path / 'masked'}"
    run(recipe, tmp_path / "probe", start, 'train.freeze=["!head"]', *SHORT)
    learned, probed = weights(tmp_path / "masked"), weights(tmp_path / "probe")
    for name, tensor in probed.items():
        assert name.startswith("head") or torch.equal(tensor, learned[f"vit.{name}"]), name
    assert probed["head.weight"].abs().max() > 0
    record = json.loads((tmp_path / "probe/start.json").read_text())["encoder"]
    assert set(record["tensors"]) == {name for name in probed if not name.startswith("head")}

    run(recipe, tmp_path / "tuned", start, "train.layer_decay=0.7", *SHORT)
    tuned = weights(tmp_path / "tuned")
    name = "encoder.blocks.0.feedforward.expand.weight"
    assert 0 < (tuned[name] - learned[f"vit.{name}"]).abs().max() < 0.2


def test_the_head_stays_where_the_classes_are_the_same(
    classifier: Path, recipe: Path, tmp_path: Path
) -> None:
    """And is new where they are others; positions fit another image size."""
    still = 'train.freeze=["patches"]', "train.learning_rate=1e-9", *SHORT
    run(recipe, tmp_path / "same", f"start.model={classifier}", *still)
    torch.testing.assert_close(weights(tmp_path / "same"), weights(classifier), rtol=0, atol=1e-6)
    for name in CLASSES:
        (tmp_path / "halves" / name).rename(tmp_path / "halves" / f"{name}-hand")
    changes = (f"start.model={classifier}", "image.height=8", *still)
    run(recipe, tmp_path / "other", *changes)
    found, before = weights(tmp_path / "other"), weights(classifier)
    assert found["head.weight"].abs().max() < 1e-6  # as a head begins
    assert found["positions.table"].shape == (13, 8)
    torch.testing.assert_close(found["positions.table"][0], before["positions.table"][0])


def test_a_start_that_does_not_fit(
    classifier: Path, translator: Path, recipe: Path, tmp_path: Path
) -> None:
    """What is where, and what to do."""
    with pytest.raises(RecipeError, match=r"(?s)encoder\.blocks\.1\.\S+: not there.*same preset"):
        run(recipe, tmp_path / "out", f"start.model={classifier}", "model.layers=2")
    with pytest.raises(RecipeError, match=r"task of .* is 'translate'"):
        run(recipe, tmp_path / "out2", f"start.model={translator}")


def test_images_without_class_folders(recipe: Path, tmp_path: Path) -> None:
    """Whoever has no labels has a folder of images, at any depth; nothing else is asked for."""
    (tmp_path / "halves" / "left" / "000.png").rename(tmp_path / "halves" / "loose.png")
    first = write_recipe(tmp_path / "masked.toml", RECONSTRUCT, tmp_path)
    assert run(first, tmp_path / "masked", *SHORT)["images"] == 8
    with pytest.raises(RecipeError, match="mix classes, and there are none"):
        read_recipe(first, ["augment.mixup=0.2"])


# --- A teacher ----------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", ["true", "false"])
def test_a_teacher(classifier: Path, recipe: Path, tmp_path: Path, hard: str) -> None:
    """Its opinion alone is enough to learn from: labels have no weight here."""
    changes = (f"distil.teacher={classifier}", "distil.weight=1.0", f"distil.hard={hard}")
    line = run(recipe, tmp_path / "student", *changes, "train.steps=60")
    assert line["value"] >= 75
    unlike = read_recipe(recipe, [*changes, "image.mode=RGB"])
    with pytest.raises(RecipeError, match=r"teacher reads L \(1 channels\), the student RGB"):
        train(unlike, out=tmp_path / "other", resume=False, observer=Silent())


def test_a_teacher_sees_what_it_is_used_to(classifier: Path) -> None:
    """Scale, size and order of the classes are its own."""
    predictor = load(classifier)
    assert isinstance(predictor, Classifier)
    theirs = predictor.preprocessing
    pixels = torch.rand(3, 1, 4, 6) * 255
    with torch.inference_mode():
        expected = predictor.model(theirs.normalise(pixels))
    ours = type(theirs)(height=4, width=6, mode="L", mean=(0.1,), std=(0.9,))
    teacher = Teacher(predictor.model, theirs, ours, predictor.labels, predictor.labels[::-1])
    torch.testing.assert_close(teacher(ours.normalise(pixels)), expected.flip(1))
    larger = type(theirs)(height=8, width=12, mode="L")
    assert Teacher(predictor.model, theirs, larger, *[predictor.labels] * 2)(
        torch.zeros(2, 1, 8, 12)
    ).shape == (2, 2)
    with pytest.raises(RecipeError, match="only one of them has left, up"):
        Teacher(predictor.model, theirs, ours, ["left", "right"], ["right", "up"])


def test_another_teacher_is_noticed(classifier: Path, recipe: Path, tmp_path: Path) -> None:
    """A run that goes on with other opinions says so; with the same ones it says nothing."""
    copy = tmp_path / "teacher"
    shutil.copytree(classifier, copy)
    changes = (f"distil.teacher={copy}", *SHORT)
    run(recipe, tmp_path / "student", *changes)
    run(recipe, tmp_path / "student", *changes, resume=True)
    shutil.rmtree(copy)
    run(recipe, copy, *SHORT)
    with remarks("other conditions.*teacher was"):
        run(recipe, tmp_path / "student", *changes, resume=True)


# --- Several classes an image ------------------------------------------------------------------


def write_quarters(root: Path, count: int = 48) -> None:
    """Images with any of their halves bright, listed in a table."""
    rows = ["image,label"]
    (root / "quarters").mkdir(parents=True)
    for number in range(count):
        on = [number % 2, number // 2 % 2]
        values = np.random.default_rng(number).integers(0, 60, (4, 6))
        values[:, :3] += 180 * on[0]
        values[:, 3:] += 180 * on[1]
        Image.fromarray(values.astype(np.uint8)).save(root / "quarters" / f"{number}.png")
        rows.append(f"{number}.png,{';'.join(n for n, o in zip(CLASSES, on, strict=True) if o)}")
    (root / "quarters" / "list.csv").write_text("\n".join(rows) + "\n")


def test_several_labels(tmp_path: Path) -> None:
    """From a table of names to mean average precision, and a probability for each class."""
    write_quarters(tmp_path)
    text = CLASSIFY.replace('"halves"', '"quarters/list.csv"\nmulti_label = true')
    recipe = write_recipe(tmp_path / "several.toml", text, tmp_path)
    changes = ("train.steps=160", "augment.shift=0", 'train.class_weights="balanced"')
    line = run(recipe, tmp_path / "out", *changes)
    assert (line["metric"], line["images"]) == ("map", 8)
    assert line["value"] > 85
    assert set(line["classes"]) == set(CLASSES)
    predictor = load(tmp_path / "out")
    assert isinstance(predictor, Classifier)
    both = Image.new("L", (6, 4), 210)
    (guesses,) = predictor.classify([both])
    assert sum(guess.probability for guess in guesses) > 1.2  # not shares of one
    write_halves(tmp_path)
    with pytest.raises(RecipeError, match="class folders give each image one class"):
        run(recipe, tmp_path / "no", "data.train=halves")


# --- Options ------------------------------------------------------------------------------------


def test_everything_at_once_resumes_where_it_was(recipe: Path, tmp_path: Path) -> None:
    """Channels-last, class weights, all augmentation: stopped half-way, the same weights."""
    changes = (
        "train.channels_last=true",
        'train.class_weights="balanced"',
        "train.layer_decay=0.8",
        "train.label_smoothing=0.1",
        "train.ema=0.9",
        "augment.flip=false",
        "augment.policy=rand",
        "augment.erase=0.3",
        "augment.mixup=0.2",
        "augment.cutmix=1.0",
        "train.save_every=3",
        "train.validate_every=3",
    )
    whole = run(recipe, tmp_path / "whole", *changes, "train.steps=6")

    class Stop(Silent):
        def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
            if step == 4:
                raise KeyboardInterrupt

    parsed = read_recipe(recipe, [*changes, "train.steps=6"])
    with pytest.raises(InterruptedRunError, match=r"Stopped at once\. The last saved step is \d"):
        train(parsed, out=tmp_path / "parts", resume=False, observer=Stop())
    again = train(parsed, out=tmp_path / "parts", resume=True, observer=Silent())
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert again["value"] == whole["value"]


def damage(root: Path) -> None:
    """Break three of forty images."""
    names = sorted((root / "halves").rglob("*.png"))
    names[0].write_bytes(b"")
    names[1].write_bytes(names[1].read_bytes()[:50])
    names[25].write_text("not an image")


def test_bad_images_are_skipped_and_counted(recipe: Path, tmp_path: Path) -> None:
    """data.on_error = "skip": named when training begins; none of those held out was among them."""
    damage(tmp_path)
    with pytest.raises(DataError, match=r"3 of 40 images.*000\.png \(it is empty.*data\.on_error"):
        run(recipe, tmp_path / "stopped", *SHORT)
    observer = Listening()
    line: dict[str, Any] = train(
        read_recipe(recipe, ["data.on_error=skip", *SHORT]),
        out=tmp_path / "out",
        resume=False,
        observer=observer,
    )
    assert "left out 3 images that cannot be read" in observer.said
    assert "000.png (it is empty (0 bytes))" in observer.said
    assert len((tmp_path / "out" / "left_out.txt").read_text().splitlines()) == 3
    assert "29 images of 2 classes" in observer.said
    assert "left_out" not in line
    counted = evaluate(load(tmp_path / "out"), data=str(tmp_path / "halves"))
    assert (counted["left_out"], counted["images"]) == (3, 37)
    for path in (tmp_path / "halves").rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match="none of 40 images can be read"):
        run(recipe, tmp_path / "none", "data.on_error=skip", *SHORT)


def write_odd(folder: Path) -> dict[str, str]:
    """Write images of every kind of trouble; return what is said of those that are none."""
    half(0, 90).save(folder / "wrong.png")
    (folder / "wrong.png").rename(folder / "wrong.jpg")
    frames = [half(0, 91), half(1, 92)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    Image.new("L", (1, 1), 200).save(folder / "pixel.png")
    Image.new("1", (6, 4), 1).save(folder / "bits.png")
    (folder / "empty.png").write_bytes(b"")
    half(0, 93, height=64, width=64).save(folder / "cut.jpg")
    (folder / "cut.jpg").write_bytes((folder / "cut.jpg").read_bytes()[:-900])
    Image.new("L", (100, 100)).save(folder / "bomb.png")
    np.save(folder / "bands.npy", np.zeros((4, 6, 5), dtype=np.uint8))
    np.save(folder / "line.npy", np.zeros(24, dtype=np.uint8))
    Image.fromarray(np.full((4, 6), 1e6, dtype=np.float32)).save(folder / "floats.tif")
    return {
        "bands.npy": "5 channels, the recipe declares 1",
        "bomb.png": "more than 4,500 pixels (a decompression bomb?)",
        "cut.jpg": "truncated",
        "empty.png": "0 bytes",
        "floats.tif": "from 1000000.0 to 1000000.0",
        "line.npy": "its shape is (24,)",
    }


def test_every_kind_of_bad_image(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop before training, or skip, as the recipe says: the count, the names, and the reasons."""
    folder = tmp_path / "halves" / "left"
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4500)
    bad = write_odd(folder)
    with pytest.raises(DataError) as caught:
        run(recipe, tmp_path / "stopped", *SHORT)
    assert not (tmp_path / "stopped").exists()
    assert str(caught.value).startswith("6 of 50 images cannot be read: ")
    observer = Listening()
    parsed = read_recipe(recipe, ["data.on_error=skip", *SHORT])
    train(parsed, out=tmp_path / "out", resume=False, observer=observer)
    assert "36 images of 2 classes" in observer.said  # 40 and four odd ones, but for 8 held out
    listed = (tmp_path / "out" / "left_out.txt").read_text().splitlines()
    assert [line.partition(" (")[0] for line in listed] == [str(folder / name) for name in bad]
    for line, (name, reason) in zip(listed, bad.items(), strict=True):
        assert reason in line
        for message in (str(caught.value), observer.said):
            assert name in message
            assert reason in message


def test_a_class_of_which_no_image_is_left(recipe: Path, tmp_path: Path) -> None:
    """A model of two classes cannot be learned from one."""
    for path in (tmp_path / "halves" / "right").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match="no training images of right"):
        run(recipe, tmp_path / "out", "data.on_error=skip", *SHORT)


def test_a_table_without_labels_is_enough_to_reconstruct(recipe: Path, tmp_path: Path) -> None:
    """Whoever has no labels has no column of them."""
    rows = [str(path) for path in sorted((tmp_path / "halves").rglob("*.png"))]
    (tmp_path / "list.csv").write_text("\n".join(["image", *rows]) + "\n")
    first = write_recipe(tmp_path / "masked.toml", RECONSTRUCT, tmp_path)
    assert run(first, tmp_path / "masked", "data.train=list.csv", *SHORT)["images"] == 8


def test_top_5_has_an_interval() -> None:
    """As accuracy has: both are shares of images."""
    classifier = load("digits")
    assert isinstance(classifier, Classifier)
    measured = measure(classifier, read_digits().select(np.arange(60)))
    assert set(measured.details["intervals"]) == {"accuracy", "top5"}
    for name, (low, high) in measured.details["intervals"].items():
        assert low <= measured.scores[name].value <= high


def test_what_is_measured(classifier: Path) -> None:
    """Interval, classes, confusions, calibration: all consistent with one another."""
    predictor = load(classifier)
    assert isinstance(predictor, Classifier)
    line = evaluate(predictor, split="train")
    matrix = np.array(line["confusion"])
    assert matrix.sum() == line["images"] == 32
    assert line["value"] == pytest.approx(100 * np.trace(matrix) / 32)
    low, high = line["intervals"]["accuracy"]
    assert low <= line["value"] <= high
    assert sum(each["images"] for each in line["reliability"]) == 32
    assert {"accuracy", "ece", "loss"} == set(line["all"])
    wrong = sum(each["count"] for each in line["confused"])
    assert wrong == 32 - np.trace(matrix)
    assert predictor(half(1, 5)) in CLASSES
