"""Real runs, trained in seconds: the healthy stay clean, the sick are told what they have."""

import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from manyheads.doctor.diagnose import Diagnosis, diagnose
from manyheads.errors import FolderError, NotFoundError
from manyheads.project.base_recipe import read_recipe
from manyheads.project.folder import write_manifest
from tests.doctor.runs import (
    CLASSIFIER,
    TAGGER,
    TRANSLATOR,
    WRITER,
    Sicken,
    kinds,
    make,
    shuffle_images,
    shuffle_targets,
    write_data,
)
from tests.made import read_jsonl, write_lines, write_recipe

RECIPES = {"translate": TRANSLATOR, "classify": CLASSIFIER, "generate": WRITER, "tag": TAGGER}
LEARNS = ("translate", "classify", "generate")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Diagnosis]:
    """A healthy run of each kind, trained once."""

    @cache
    def made(task: str) -> Diagnosis:
        return make(tmp_path_factory.mktemp(task), RECIPES[task])

    return made


@pytest.fixture
def own(healthy: Callable[[str], Diagnosis], tmp_path: Path) -> Path:
    """A copy of the healthy translator, to be made sick."""
    return shutil.copytree(healthy("translate").path, tmp_path / "own")


def operate(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Change the weights of a folder, as somebody who knows what he does."""
    file = folder / "model.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(file).items()}
    change(weights)
    save_file(weights, file)
    write_manifest(folder, read_recipe(folder / "recipe.toml"))


def on_other_data(folder: Path, root: Path) -> Diagnosis:
    """Diagnose a trained folder as if it had been trained on the data under root."""
    recipe = folder / "recipe.toml"
    text = re.sub(r'root = "[^"]*"', f'root = "{root}"', recipe.read_text(encoding="utf-8"))
    recipe.write_text(text, encoding="utf-8")
    write_manifest(folder, read_recipe(recipe))
    return diagnose(str(folder))


def on_images(root: Path, sicken: Sicken) -> Diagnosis:
    """Diagnose a run on images that has only begun: there is nothing but a recipe."""
    write_data(root, CLASSIFIER)
    sicken(root)
    (root / "run").mkdir()
    write_recipe(root / "run" / "recipe.toml", CLASSIFIER, root)
    return diagnose(str(root / "run"))


# --- Health -------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", RECIPES)
def test_a_healthy_run(task: str, healthy: Callable[[str], Diagnosis]) -> None:
    """Nothing found, and a list of what was looked at."""
    found = healthy(task)
    assert kinds(found) == {}
    assert (found.task, found.finished, found.errors) == (task, True, 0)
    assert found.not_looked_at == []
    looked = " ".join(found.looked_at)
    assert "validations" in looked
    assert "losses: " in looked
    assert "heads: " in looked


# --- The learning rate --------------------------------------------------------------------------


@pytest.mark.parametrize("task", LEARNS)
def test_a_hundred_times_too_fast(task: str, tmp_path: Path) -> None:
    """Said first, with a rate near the good one; loops and collapse only follow from it."""
    rate = 10.0 if task == "classify" else 1.0  # at 1 halves are learned all the same, by luck
    found = make(tmp_path, RECIPES[task], f"train.learning_rate={rate}", "train.steps=60")
    first = found.findings[0]
    assert (first.kind, first.severity) == ("learning-rate-high", "error")
    assert 1e-3 <= first.settings["train.learning_rate"] <= 3e-2
    assert set(kinds(found)) == {"learning-rate-high"}


@pytest.mark.parametrize(
    "task", ["classify", "generate", pytest.param("translate", marks=pytest.mark.full)]
)
def test_a_hundred_times_too_slow(task: str, tmp_path: Path) -> None:
    """Never to be told to learn more slowly."""
    found = make(tmp_path, RECIPES[task], "train.learning_rate=1e-4", "train.steps=60")
    assert "learning-rate-low" in kinds(found)
    (low,) = [each for each in found.findings if each.kind == "learning-rate-low"]
    assert low.settings["train.learning_rate"] >= 5e-4
    assert not {"learning-rate-high", "nothing-learned", "diverged", "spikes"} & set(kinds(found))


def test_a_loss_that_becomes_infinite(own: Path) -> None:
    """What training writes down when it stops."""
    with (own / "metrics.jsonl").open("a") as file:
        file.write('{"step": 240, "epoch": 9, "non_finite": 1}\n')
    found = diagnose(str(own))
    assert kinds(found)["non-finite"] == "error"
    assert not found.finished


def test_training_writes_down_where_it_broke(tmp_path: Path) -> None:
    """A rate beyond all numbers, unfinished and without weights."""
    changes = ["train.learning_rate=1e38", "train.steps=20", "train.warmup=0", "train.clip=0"]
    found = make(tmp_path, CLASSIFIER, *changes, "train.log_every=1")
    assert kinds(found)["non-finite"] == "error"
    line = read_jsonl(found.path / "metrics.jsonl")[-1]
    assert (line["step"], line["non_finite"]) == (found.step, 1)


# --- The data -----------------------------------------------------------------------------------


def test_pairs_that_do_not_belong_together(tmp_path: Path) -> None:
    """The wrong source is as good as the right one; examples are shown."""
    found = make(tmp_path, TRANSLATOR, "train.steps=100", sicken=shuffle_targets)
    assert kinds(found) == {"nothing-learned": "error"}
    evidence = found.findings[0].evidence
    assert "with the source of another pair" in evidence[0]
    assert " → " in evidence[1]
    assert "check-data" in found.findings[0].remedy


def test_classes_by_chance(tmp_path: Path) -> None:
    """A small model learns nothing of them."""
    found = make(tmp_path, CLASSIFIER, sicken=shuffle_images)
    assert set(kinds(found)) & {"nothing-learned", "by-heart"}
    assert found.errors == 1


def test_a_validation_that_was_trained_on(own: Path, tmp_path: Path) -> None:
    """Both line numbers; case and spaces do not hide it."""

    write_data(tmp_path, TRANSLATOR)
    for side in ("en", "de"):
        train = (tmp_path / "numbers" / f"train.{side}").read_text("utf-8").splitlines()
        path = tmp_path / "numbers" / f"valid.{side}"
        valid = path.read_text("utf-8").splitlines()
        write_lines(path, [*valid[:70], *(line.upper() for line in train[:30])])
    found = on_other_data(own, tmp_path)
    assert kinds(found)["seen-before"] == "error"
    (seen,) = [each for each in found.findings if each.kind == "seen-before"]
    assert seen.evidence[0] == "30 of 100 pairs"
    assert "line 71 is also" in seen.evidence[1]
    assert "line 1: " in seen.evidence[1]


def test_sources_with_their_translation(own: Path, tmp_path: Path) -> None:
    """Two columns in one."""
    write_data(tmp_path, TRANSLATOR)
    for split in ("train", "valid"):
        source, target = (
            (tmp_path / "numbers" / f"{split}.{side}").read_text("utf-8").splitlines()
            for side in ("en", "de")
        )
        both = [f"{s} {t}" for s, t in zip(source, target, strict=True)]
        write_lines(tmp_path / "numbers" / f"{split}.en", both)
    assert kinds(on_other_data(own, tmp_path))["target-in-source"] == "error"


def test_images_on_both_sides(tmp_path: Path) -> None:
    """Each image twice in the folder that the validation is held out of."""

    def copy(root: Path) -> None:
        for path in sorted((root / "halves").rglob("*.png")):
            shutil.copyfile(path, path.with_name(f"copy-{path.name}"))

    found = on_images(tmp_path, copy)
    assert kinds(found) == {"seen-before": "error"}
    assert ".png = " in found.findings[0].evidence[1]


def test_a_stamp_that_tells_the_class(tmp_path: Path) -> None:
    """A corner that is black in one class and grey in the other."""

    def stamp(root: Path) -> None:
        for path in (root / "halves").rglob("*.png"):
            with Image.open(path) as image:
                marked = image.copy()
            marked.putpixel((5, 3), 0 if path.parent.name == "left" else 90)
            marked.save(path)

    found = on_images(tmp_path, stamp)
    (leak,) = [each for each in found.findings if each.kind == "label-in-pixels"]
    assert "row 3, column 5" in leak.evidence[0]
    assert "left 0, right 90" in leak.evidence[1]


def test_classes_from_different_files(tmp_path: Path) -> None:
    """One class is larger images."""

    def enlarge(root: Path) -> None:
        for path in (root / "halves" / "left").glob("*.png"):
            with Image.open(path) as image:
                larger = image.resize((12, 8))
            larger.save(path)

    found = on_images(tmp_path, enlarge)
    assert kinds(found)["label-in-size"] == "warning"


def test_frames_of_one_film(tmp_path: Path) -> None:
    """Neighbours by name are nearly the same image, others of the class are not."""

    def film(root: Path) -> None:
        random = np.random.default_rng(0)
        for number, path in enumerate(sorted((root / "halves").rglob("*.png"))):
            if number % 6 == 0:
                scene = random.integers(0, 250, (32, 48))
            frame = scene + random.integers(0, 5, scene.shape)
            Image.fromarray(frame.astype(np.uint8)).save(path)

    found = on_images(tmp_path, film)
    assert kinds(found)["series"] == "error"


@pytest.mark.parametrize("held", [1, 2])
def test_one_frame_of_each_film(tmp_path: Path, held: int) -> None:
    """Many classes, one or two images of each held out: still the same film on both sides."""
    random = np.random.default_rng(0)
    for number in range(24):
        folder = tmp_path / "films" / f"{number:02}"
        folder.mkdir(parents=True)
        for frame in range(24):
            if frame % 12 == 0:
                scene = random.integers(0, 250, (32, 48))
            image = (scene + random.integers(0, 5, scene.shape)).astype(np.uint8)
            Image.fromarray(image).save(folder / f"{frame:02}.png")
    recipe = CLASSIFIER.replace('"halves"', '"films"').replace(
        "hold_out = 40", f"hold_out = {24 * held}"
    )
    (tmp_path / "run").mkdir()
    write_recipe(tmp_path / "run" / "recipe.toml", recipe, tmp_path)
    assert kinds(diagnose(str(tmp_path / "run")))["series"] == "error"


# --- Heads --------------------------------------------------------------------------------------


def test_a_zeroed_head(own: Path) -> None:
    """Named with its layer; what the others do is not its fault."""

    def zero(weights: dict[str, torch.Tensor]) -> None:
        name = next(n for n in weights if n.startswith("encoder") and n.endswith("qkv.weight"))
        for each in (weights[name], weights[name.replace("weight", "bias")]):
            each.view(3, 2, 16, -1)[:, 0] = 0  # queries, keys, values; head; size

    operate(own, zero)
    found = diagnose(str(own))
    (dead,) = [each for each in found.findings if each.kind == "dead-heads"]
    assert dead.what.startswith("1 of 6 heads")
    assert dead.evidence[0].startswith("encoder layer 1 self, head 1")


def test_copied_heads(own: Path) -> None:
    """Both heads of the cross-attention read the same."""

    def copy(weights: dict[str, torch.Tensor]) -> None:
        (name,) = [n for n in weights if n.startswith("decoder") and n.endswith("cross.qkv.weight")]
        for each in (weights[name], weights[name.replace("weight", "bias")]):
            parts = each.view(3, 2, 16, -1)
            parts[:2, 1] = parts[:2, 0]

    operate(own, copy)
    found = diagnose(str(own))
    (twins,) = [each for each in found.findings if each.kind == "duplicate-heads"]
    assert twins.evidence == ("decoder layer 1 cross, heads 1 and 2: their maps differ by 0%",)


def test_weights_that_are_no_numbers(own: Path) -> None:
    """Nothing else is asked of such a model."""

    def spoil(weights: dict[str, torch.Tensor]) -> None:
        next(iter(weights.values())).view(-1)[0] = torch.nan

    operate(own, spoil)
    found = diagnose(str(own))
    assert kinds(found) == {"non-finite-weights": "error"}


def test_a_model_that_says_one_thing(healthy: Callable[[str], Diagnosis], tmp_path: Path) -> None:
    """The head's bias decides alone."""
    folder = shutil.copytree(healthy("classify").path, tmp_path / "own")

    def decide(weights: dict[str, torch.Tensor]) -> None:
        weights["head.bias"][:] = torch.tensor([0.0, 100.0])

    operate(folder, decide)
    (found,) = diagnose(str(folder)).findings
    assert "Collapse: nearly every input gets the same answer." in " ".join(
        (found.what, *found.evidence)
    )


# --- What is there of a run ---------------------------------------------------------------------


def test_an_unfinished_run(own: Path) -> None:
    """From its checkpoint, before the first validation wrote a model folder."""
    for name in ("manyheads.json", "model.safetensors", "evaluations.jsonl", "README.md"):
        (own / name).unlink(missing_ok=True)
    lines = (own / "metrics.jsonl").read_text().splitlines(keepends=True)
    (own / "metrics.jsonl").write_text("".join(lines[:20]))
    for path in (own / "state").iterdir():
        shutil.rmtree(path) if path.name.endswith("240") else None
    found = diagnose(str(own))
    assert (found.finished, found.step) == (False, 100)
    assert "too-short" not in kinds(found)
    assert any(line.startswith("heads") for line in found.looked_at)
    newest = sorted((own / "state").iterdir())[-1]
    weights = newest / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(FolderError, match=f"{newest.name} is damaged: .*has changed"):
        diagnose(str(own))


def test_a_run_that_has_only_begun(own: Path) -> None:
    """No weights, no metrics: the data can be looked at."""
    for name in ("manyheads.json", "model.safetensors", "metrics.jsonl"):
        (own / name).unlink()
    shutil.rmtree(own / "state")
    found = diagnose(str(own))
    assert found.step == 0
    assert kinds(found) == {}
    missing = " ".join(found.not_looked_at)
    assert "weights: none are stored yet" in missing
    assert "metrics: there are none" in missing


def test_without_data(own: Path) -> None:
    """Metrics and weights speak for themselves; the answer says what was not looked at."""
    recipe = own / "recipe.toml"
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("numbers/train", "gone/train"), encoding="utf-8")
    write_manifest(own, read_recipe(recipe))
    found = diagnose(str(own))
    assert kinds(found) == {}
    assert any("There is no data 'gone/train'" in line for line in found.not_looked_at)


def test_no_run(tmp_path: Path) -> None:
    """As every other verb says it."""
    with pytest.raises(NotFoundError, match="no model 'nothing'"):
        diagnose("nothing")
    with pytest.raises(FolderError, match="not a model folder"):
        diagnose(str(tmp_path))
