"""Converted classifiers answer what their libraries answered, at other image sizes too.

`python -m benchmarks.goldens` records the files; `make parity` compares with the libraries live.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert import vit_weights
from manyheads.models.convert.families import CONVERTERS
from manyheads.models.presets import build
from manyheads.models.resize import resize
from tests.models import test_golden_encoders

FOLDER = Path(__file__).parents[1] / "golden" / "images"
NAMES = sorted(path.stem for path in FOLDER.iterdir())
every = pytest.mark.parametrize("name", NAMES)


@dataclass(frozen=True)
class Golden:
    kind: str
    settings: dict[str, Any]
    tensors: dict[str, Tensor]
    images: Tensor
    logits: Tensor
    resized: bool

    def convert(self) -> tuple[Any, dict[str, Tensor]]:
        return CONVERTERS[self.kind](self.settings, self.tensors)


def load(name: str) -> Golden:
    with safe_open(FOLDER / f"{name}.safetensors", framework="pt") as file:
        about = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    images, logits = tensors.pop("images"), tensors.pop("logits")
    weights = {key.removeprefix("weights."): tensor for key, tensor in tensors.items()}
    settings, resized = json.loads(about["settings"]), json.loads(about["resized"])
    return Golden(about["kind"], settings, weights, images, logits, resized)


@every
def test_converted_models_answer_the_same(name: str) -> None:
    """Within 1e-4 of the largest logit; and the answers are ones that tell images apart."""
    golden = load(name)
    config, state = golden.convert()
    if golden.resized:
        size = (golden.images.shape[2], golden.images.shape[3])
        assert size != (config.height, config.width)
        config, state = resize(config, state, size, golden.kind.partition(" ")[0])
    model = build(config).eval()
    model.load_state_dict(state)
    with torch.inference_mode():
        logits = model(golden.images)
    largest = golden.logits.abs().max()
    assert (golden.logits[0] - golden.logits[1]).abs().max() > 0.01 * largest
    assert (logits - golden.logits).abs().max() <= 1e-4 * largest


def test_every_family_is_recorded() -> None:
    """Here, in test_golden.py or with the encoders; but torchvision's ResNet, as timm's."""
    recorded = {load(name).kind for name in NAMES}
    recorded |= {test_golden_encoders.load(name).kind for name in test_golden_encoders.NAMES}
    for path in FOLDER.parent.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            about = file.metadata()
        if "marian" not in path.stem:
            family = about.get("family", "vit")
            recorded.add(f"{about['library']} {family}".replace("transformers", "hf"))
    assert recorded == set(CONVERTERS) - {"torchvision resnet"}


@every
def test_a_missing_tensor_is_named(name: str) -> None:
    golden = load(name)
    missing = next(key for key in sorted(golden.tensors) if "num_batches" not in key)
    del golden.tensors[missing]
    with pytest.raises(UsageError, match="tensor"):
        golden.convert()


@every
def test_what_ours_has_not_is_refused(name: str) -> None:
    golden = load(name)
    beside = "resnet/extra" if name == "google-bit" else "extra.gamma"
    golden.tensors[beside] = torch.ones(8)
    with pytest.raises(UsageError, match=rf"no place for: {beside}"):
        golden.convert()


def test_a_renamed_model_of_another_width_is_refused() -> None:
    """The name says how many heads there are: those of another model would be a wrong answer."""
    golden = load("timm-vit-patch-mean")
    with pytest.raises(UsageError, match="embed_dim 768, but its tensors have 8"):
        vit_weights.vit_of_timm(golden.settings | {"embed_dim": 768}, golden.tensors)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hf-resnet-basic", {"downsample_in_bottleneck": True}, "downsample_in_bottleneck = True"),
        (
            "hf-resnet-basic",
            {"hidden_act": "gelu"},
            "'gelu'; only 'relu' is supported",
        ),
        ("hf-bit", {"global_padding": "SAME"}, "global_padding = 'SAME'"),
        (
            "timm-resnet-basic",
            {"global_pool": "max"},
            "'max'; only 'avg' is supported",
        ),
        ("timm-bit-odd", {"global_pool": "catavgmax"}, "global_pool = 'catavgmax'"),
        ("timm-vgg-batch-norm-large", {"global_pool": "max"}, "global_pool = 'max'"),
        ("hf-bit", {"layer_type": "bottleneck"}, "layer_type = 'bottleneck'"),
    ],
)
def test_parts_that_tensors_do_not_show(name: str, change: dict[str, Any], message: str) -> None:
    golden = load(name)
    with pytest.raises(UsageError, match=message):
        replace(golden, settings=golden.settings | change).convert()


def test_a_stem_of_somebodys_own_is_refused() -> None:
    """ResNets for 32 pixels are often torchvision's with another beginning: no tensor shows it."""
    golden = load("timm-resnet-basic")
    golden.tensors["conv1.weight"] = golden.tensors["conv1.weight"][:, :, 2:5, 2:5]
    with pytest.raises(UsageError, match="begins with a convolution of 3 x 3"):
        golden.convert()


def test_a_grid_is_square_unless_somebody_says_otherwise() -> None:
    """15 positions behind a class token are no square: the size must be told."""
    golden = load("timm-vit-resized")  # 2 x 3 patches of 4 pixels, and a class token
    settings = {"num_heads": 2, "img_size": 224}
    with pytest.raises(UsageError, match="7 positions"):
        vit_weights.vit_of_timm(settings, golden.tensors)
    config, _ = vit_weights.vit_of_timm(settings | {"wanted_size": (8, 12)}, golden.tensors)
    assert (config.height, config.width) == (8, 12)


def test_weights_tuned_at_another_size_than_the_name_says() -> None:
    """A square number of positions says the size itself."""
    golden = load("torchvision-vit-resized")
    config, _ = vit_weights.vit_of_torchvision({"num_heads": 2, "img_size": 224}, golden.tensors)
    assert (config.height, config.width) == (8, 8)
