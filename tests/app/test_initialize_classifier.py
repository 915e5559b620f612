"""A pre-trained start of a classifier: its heads, and another image size."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from manyheads.app.convert.classifiers import from_images
from manyheads.app.pipelines.classify import ClassifyRecipe
from manyheads.app.project.recipe import read_recipe
from manyheads.app.train.initialize_classifier import start_classifier
from manyheads.models.presets import build
from manyheads.models.resize import resize
from manyheads.train.checkpoint import tensors
from tests.app.test_convert_classifiers import write_hf
from tests.made import CLASSES, CLASSIFY, run, write_halves, write_recipe
from tests.models.test_golden_images import load as golden
from tests.small import randomise

SHORT = ("train.steps=1", "train.warmup=0", "train.validate_every=1", "train.log_every=1")
COATNET = (
    'model={preset="coatnet-0", stem=[4, 4], dims=[4, 8], layers=[1, 1], convolutions=1, '
    "head_size=8, expansion=1}"
)


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
