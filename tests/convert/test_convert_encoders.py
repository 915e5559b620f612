"""Encoders of other libraries become folders: for vectors, and for classifiers to start from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from manyheads.convert.classifiers import Library, from_images
from manyheads.errors import RecipeError, UsageError
from manyheads.fit.run_training import train
from manyheads.predict.load import load
from manyheads.project.base_recipe import read_recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.model_facts import describe
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.embed.predictor import Embedder
from tests.made import Silent, write_halves
from tests.models.test_golden_encoders import Golden
from tests.models.test_golden_encoders import load as golden


def write(of: Golden, folder: Path, **config: Any) -> Path:
    """Write a folder as its library does; timm's config.json names the architecture."""
    folder.mkdir()
    save_file(
        {name: t.contiguous() for name, t in of.tensors.items()}, folder / "model.safetensors"
    )
    settings = of.settings if of.kind.startswith("hf") else {}
    (folder / "config.json").write_text(json.dumps(settings | config))
    return folder


def convert(name: str, folder: Path, **config: Any) -> Path:
    library: Library = "hf" if name.startswith("hf") else "timm"
    from_images(library, str(write(golden(name), folder / "theirs", **config)), folder / "out")
    return folder / "out"


DINO = {
    "image_processor_type": "BitImageProcessor",
    "size": {"shortest_edge": 10},
    "crop_size": 8,
    "do_center_crop": True,
    "resample": 3,
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}


@pytest.mark.parametrize("name", ["hf-clip", "hf-clip-projection", "hf-siglip", "hf-dinov2"])
def test_an_encoder_gives_the_vectors_of_its_library(name: str, tmp_path: Path) -> None:
    reference = golden(name)
    source = write(reference, tmp_path / "theirs")
    if name == "hf-dinov2":
        (source / "preprocessor_config.json").write_text(json.dumps(DINO))
    out = from_images("hf", str(source), tmp_path / "out").folder
    encoder = load(out)
    assert isinstance(encoder, Embedder)
    with torch.inference_mode():
        found = encoder.model(reference.images)
    assert (found - reference.answer).abs().max() <= 1e-4 * reference.answer.abs().max()
    image = Image.new("RGB", (30, 20), "red")
    one, several = encoder(image), encoder([image, image])
    assert one.shape == reference.answer.shape[1:]
    np.testing.assert_allclose(several[1], one, atol=1e-6)
    tokens = encoder.embed_tokens([image])
    assert tokens.shape == (1, *reference.tokens.shape[1:])
    assert not (out / "labels.json").exists()
    assert "Turns images into vectors" in (out / "README.md").read_text()
    assert describe(str(out))["task"] == "embed"


def test_a_clip_under_the_name_of_a_plain_vit_is_refused(tmp_path: Path) -> None:
    """Its norm in front of the stack shows it; a plain ViT has other epsilons. Nothing is left."""
    config: dict[str, Any] = {
        "architecture": "vit_base_patch4_224",
        "model_args": {"num_heads": 2, "embed_dim": 8},
        "pretrained_cfg": {"input_size": [3, 8, 12]},
    }
    with pytest.raises(UsageError, match="pre_norm False, but its tensors have True"):
        convert("timm-clip", tmp_path, **config)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_a_timm_clip_without_labels_is_an_encoder_if_its_head_has_no_bias(tmp_path: Path) -> None:
    """As the projection of published encoders; a fine-tuned classifier's bias is not zero."""
    config = {
        "architecture": "vit_base_patch4_clip_quickgelu",
        "model_args": {"num_heads": 2, "embed_dim": 8},
        "pretrained_cfg": {"input_size": [3, 8, 12]},
    }
    made = convert("timm-clip", tmp_path, **config)
    assert ModelFolder(made).recipe.task == "classify"
    of = golden("timm-clip")
    of.tensors["head.bias"].zero_()
    source = write(of, tmp_path / "projects", **config)
    from_images("timm", str(source), tmp_path / "encoder")
    folder = ModelFolder(tmp_path / "encoder")
    assert folder.recipe.task == "embed"
    assert folder.model().config.classes == 5  # type: ignore[union-attr]


def test_a_classifier_of_hugging_face_with_a_new_head_is_none(tmp_path: Path) -> None:
    """Its bias may be zero: it is the class that says what the head is."""
    of = golden("hf-clip-classifier")
    of.tensors["classifier.bias"].zero_()
    from_images("hf", str(write(of, tmp_path / "theirs")), tmp_path / "out")
    assert isinstance(load(tmp_path / "out"), Classifier)


def test_images_are_prepared_as_published_models_ask(tmp_path: Path) -> None:
    """CLIP: the shortest edge, bicubic, a crop; DINOv2's processor has another size than it."""
    found = load(convert("hf-clip", tmp_path)).preprocessing  # type: ignore[attr-defined]
    assert (found.interpolation, found.resize_mode) == ("bicubic", "crop")
    assert found.mean == pytest.approx((0.48145466, 0.4578275, 0.40821073))
    (tmp_path / "dino").mkdir()
    of = golden("hf-dinov2")
    source = write(of, tmp_path / "dino" / "theirs")
    larger = DINO | {"size": {"shortest_edge": 16}, "crop_size": 12}
    (source / "preprocessor_config.json").write_text(json.dumps(larger))
    made = from_images("hf", str(source), tmp_path / "dino" / "out")
    assert made.size == (12, 12)  # of a model for 8 x 8, whose positions are interpolated
    assert made.classes == 0


def test_clip_allows_no_other_size_than_its_own(tmp_path: Path) -> None:
    source = write(golden("hf-clip"), tmp_path / "theirs")
    processor = {"size": 12, "crop_size": 12, "image_processor_type": "CLIPImageProcessor"}
    (source / "preprocessor_config.json").write_text(json.dumps(processor | {"resample": 3}))
    with pytest.raises(UsageError, match=r"prepares images of 12 x 12 .* its model is for 8 x 8"):
        from_images("hf", str(source), tmp_path / "out")


RECIPE = """
task = "classify"

[data]
train = "halves"
hold_out = 8

[start]
model = "{start}"

[train]
steps = 4
batch_size = 8
learning_rate = 1e-2
warmup = 2
threads = 1
log_every = 2
validate_every = 4
save_every = 4
"""


@pytest.mark.parametrize("name", ["hf-siglip", "hf-clip-projection"])
def test_a_classifier_starts_from_an_encoder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANYHEADS_DATA", str(tmp_path))
    out = convert(name, tmp_path)
    write_halves(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE.format(start=out))
    recipe = read_recipe(tmp_path / "recipe.toml", ["image.mode=RGB"])
    train(recipe, out=tmp_path / "run", observer=Silent())
    started = ModelFolder(tmp_path / "run")
    ours, theirs = started.recipe.config(), ModelFolder(out).recipe.config()
    same = ("dim", "activation", "registers", "embedding_norm", "pool", "layer_scale")
    assert {key: getattr(ours, key) for key in same} == {k: getattr(theirs, k) for k in same}
    assert isinstance(load(tmp_path / "run"), Classifier)


def test_an_encoder_is_not_trained_alone(tmp_path: Path) -> None:
    recipe = read_recipe(convert("hf-dinov2", tmp_path) / "recipe.toml", stored=True)
    with pytest.raises(RecipeError, match="not trained alone"):
        train(recipe, out=tmp_path / "run", observer=Silent())
