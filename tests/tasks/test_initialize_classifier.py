"""A pre-trained start of a classifier: its heads, and another image size."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from safetensors.torch import load_file

from manyheads.convert.classifiers import from_images
from manyheads.data.images.image_set import Preprocessing
from manyheads.errors import NotFoundError
from manyheads.files import sha256
from manyheads.fit.run_training import train
from manyheads.models.presets import build
from manyheads.models.resize import resize
from manyheads.project.base_recipe import read_recipe
from manyheads.tasks.classify.initialize import start_classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.train.model_tensors import tensors
from tests.convert.test_convert_classifiers import write_hf
from tests.made import CLASSES, CLASSIFY, Silent, run, write_halves, write_recipe
from tests.models.test_golden_images import load as golden
from tests.small import randomise

SHORT = ("train.steps=1", "train.warmup=0", "train.validate_every=1", "train.log_every=1")
COATNET = (
    'model={preset="coatnet-0", stem=[4, 4], dims=[4, 8], layers=[1, 1], convolutions=1, '
    "head_size=8, expansion=1}"
)


class Said(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    write_halves(tmp_path, count=16)
    return write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)


def begun(
    recipe: Path, *changes: str, classes: tuple[str, ...]
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """A classifier's tensors as they begin, and which of them another model gave."""
    read = read_recipe(recipe, changes)
    assert isinstance(read, ClassifyRecipe)
    model = randomise(build(read.config(classes=len(classes))))
    assert read.start is not None
    record = start_classifier(model, read, read.start.model, classes)
    return tensors(model), record["encoder"]["tensors"]


def test_other_classes_take_no_head_of_deit(recipe: Path, tmp_path: Path) -> None:
    """Neither the one that learned from labels nor the teacher's; all else is taken over."""
    run(recipe, tmp_path / "deit", "model.preset=deit-ti", *SHORT)
    changes = ("model.preset=deit-ti", f"start.model={tmp_path / 'deit'}")
    found, taken = begun(recipe, *changes, classes=("a", "b", "c"))
    heads = {f"{head}.{kind}" for head in ("head", "teacher_head") for kind in ("weight", "bias")}
    assert set(taken) == found.keys() - heads
    _, taken = begun(recipe, *changes, classes=CLASSES)
    assert set(taken) == found.keys()


def test_bias_tables_fit_another_size(recipe: Path, tmp_path: Path) -> None:
    """CoAtNet's distances are interpolated as positions are: one resizer."""
    run(recipe, tmp_path / "coatnet", COATNET, "image.height=16", "image.width=24", *SHORT)
    changes = (COATNET, f"start.model={tmp_path / 'coatnet'}", "image.height=32", "image.width=40")
    found, taken = begun(recipe, *changes, classes=("a", "b", "c"))
    stored = load_file(tmp_path / "coatnet" / "model.safetensors")
    config = read_recipe(recipe, [COATNET, "image.height=16", "image.width=24"]).config()
    _, fitted = resize(config, stored, (32, 40))
    name = "stages.1.0.attention.bias.table"
    assert name in taken
    assert found[name].shape == (7 * 9, 1)  # a grid of 4 x 5
    assert torch.equal(found[name], fitted[name])


def test_converted_weights_are_fitted_as_their_library_does(recipe: Path, tmp_path: Path) -> None:
    """Hugging Face's curve is not ours."""
    reference = golden("hf-vit-resized")
    source = write_hf(reference, tmp_path / "theirs")
    from_images("hf", str(source), tmp_path / "hf")
    shape = 'model={preset="vit-ti", patch=4, dim=8, layers=1, heads=2, ffn_dim=16, norm_eps=1e-12}'
    size = ("image.height=16", "image.width=12", 'image.mode="RGB"')
    changes = (shape, *size, f"start.model={tmp_path / 'hf'}")
    found, _ = begun(recipe, *changes, classes=CLASSES)
    _, fitted = resize(*reference.convert(), (16, 12), "hf")
    torch.testing.assert_close(found["positions.table"], fitted["positions.table"])
    _, ours = resize(*reference.convert(), (16, 12))
    assert (found["positions.table"] - ours["positions.table"]).abs().max() > 1e-3


def without(recipe: Path, *keys: str) -> Path:
    """The recipe without some of its keys."""
    table: dict[str, Any] = tomllib.loads(recipe.read_text(encoding="utf-8"))
    for key in keys:
        *tables, last = key.split(".")
        (table[tables[0]] if tables else table).pop(last, None)
    recipe.write_text(tomli_w.dumps(table), encoding="utf-8")
    return recipe


def test_what_the_recipe_leaves_out_is_as_in_the_start_model(recipe: Path, tmp_path: Path) -> None:
    """Preset and sizes, and every number of the preprocessing: pixels mean what they meant."""
    theirs = ("image.mean=[0.3]", "image.std=[0.2]", "image.resize_mode=stretch")
    run(recipe, tmp_path / "first", *theirs, *SHORT)
    first = read_recipe(tmp_path / "first" / "recipe.toml")
    start = f"start.model={tmp_path / 'first'}"
    second = read_recipe(without(recipe, "model", "image"), [start])
    assert isinstance(first, ClassifyRecipe)
    assert isinstance(second, ClassifyRecipe)
    assert second.image == first.image
    assert second.config(classes=2) == first.config()


def test_what_the_recipe_says_stands(recipe: Path, tmp_path: Path) -> None:
    """Also where it differs from the start model; the run says in what."""
    run(recipe, tmp_path / "first", "image.mean=[0.3]", *SHORT)
    start = f"start.model={tmp_path / 'first'}"
    second = read_recipe(recipe, [start, "image.std=[0.7]", "model.dropout=0.2"])
    assert isinstance(second, ClassifyRecipe)
    assert (second.image.mean, second.image.std) == ((0.3,), (0.7,))
    said = Said()
    train(second, out=tmp_path / "second", observer=said)
    (line,) = [line for line in said.lines if line.startswith("starting from")]
    assert "preset vit-ti, images are read as there, but image.std = (0.7,) (there (0.5,))" in line
    rgb = read_recipe(recipe, [start, 'image.mode="RGB"'])  # three channels, not their one mean
    assert isinstance(rgb, ClassifyRecipe)
    assert rgb.image.mean == Preprocessing().mean


def test_the_same_classes_in_another_order_keep_the_head(recipe: Path, tmp_path: Path) -> None:
    """As a converted model has them, not in the order of the alphabet."""
    run(recipe, tmp_path / "first", *SHORT)
    labels = tmp_path / "first" / "labels.json"
    labels.write_text('["right", "left"]')
    manifest = json.loads((tmp_path / "first" / "manyheads.json").read_text())
    manifest["sha256"]["labels.json"] = sha256(labels)
    (tmp_path / "first" / "manyheads.json").write_text(json.dumps(manifest))
    run(recipe, tmp_path / "second", f"start.model={tmp_path / 'first'}", *SHORT)
    assert json.loads((tmp_path / "second" / "labels.json").read_text()) == ["right", "left"]
    taken = json.loads((tmp_path / "second" / "start.json").read_text())["encoder"]["tensors"]
    assert "head.weight" in taken


def test_a_start_model_that_is_not_there(recipe: Path, tmp_path: Path) -> None:
    """A recipe that needs nothing of it can be read; one that does cannot."""
    gone = f"start.model={tmp_path / 'gone'}"
    assert read_recipe(recipe, [gone]) is not None
    with pytest.raises(NotFoundError, match="There is no model"):
        run(recipe, tmp_path / "second", gone)
    with pytest.raises(NotFoundError, match="There is no model"):
        read_recipe(without(recipe, "model"), [gone])
