"""Converted models answer what the libraries they come from answered, without those installed.

`python -m benchmarks.goldens` records the files; `make parity` compares with the libraries live.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert import vit_weights
from manyheads.models.convert.converter import Converter
from manyheads.models.convert.families import CONVERTERS
from manyheads.models.presets import build
from manyheads.models.vit import VitConfig

FOLDER = Path(__file__).parents[1] / "golden"
NAMES = (
    "hf-vit",
    "hf-vit-relu-without-bias",
    "timm-vit",
    "timm-vit-mean",
    "timm-vit-without-bias",
)
STAGED = (
    "hf-cvt-odd",
    "hf-deit",
    "hf-swin-covered",
    "hf-swin-padded",
    "timm-coatnet_0-wide",
    "timm-coatnet_0_rw-wide",
    "timm-coatnet_3_rw-wide",
    "timm-deit",
    "timm-swin-padded",
    "timm-swin-small",
    "torchvision-swin-padded",
    "torchvision-swin-small",
)


@dataclass(frozen=True)
class Golden:
    convert: Converter[Any]
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    images: Tensor
    logits: Tensor


def load(name: str) -> Golden:
    with safe_open(FOLDER / f"{name}.safetensors", framework="pt") as file:
        about = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    images, logits = tensors.pop("images"), tensors.pop("logits")
    weights = {key.removeprefix("weights."): tensor for key, tensor in tensors.items()}
    kind = f"{about['library']} {about.get('family', 'vit')}".replace("transformers", "hf")
    return Golden(CONVERTERS[kind], json.loads(about["config"]), weights, images, logits)


@pytest.mark.parametrize("name", NAMES + STAGED)
def test_converted_models_answer_the_same(name: str) -> None:
    """Within 1e-4 of the largest logit."""
    golden = load(name)
    config, state = golden.convert(golden.config, golden.tensors)
    model = build(config).eval()
    model.load_state_dict(state)
    difference = (model(golden.images) - golden.logits).abs().max()
    assert difference <= 1e-4 * golden.logits.abs().max()


def test_every_recorded_file_is_tested() -> None:
    """Marian's in test_marian.py, folders' in test_golden_images.py; the others are no models."""
    files = {path.name for path in FOLDER.iterdir() if path.is_file()}
    elsewhere = {name for name in files if name.startswith("hf-marian")}
    elsewhere |= {"shipped.json", "pip-reports.json", "splits.json", "surface.json"}
    assert files - elsewhere == {f"{name}.safetensors" for name in NAMES + STAGED}


def test_the_whole_configuration_is_read() -> None:
    golden = load("hf-vit")
    config, _ = vit_weights.vit_of_hf(golden.config, golden.tensors)
    assert config == VitConfig(
        height=8,
        width=12,
        patch=4,
        dim=8,
        layers=2,
        heads=2,
        ffn_dim=16,
        classes=5,
        norm_eps=1e-12,
    )


@pytest.mark.parametrize("name", NAMES + STAGED)
def test_a_missing_tensor_is_named(name: str) -> None:
    golden = load(name)
    missing = max(name for name in golden.tensors if not name.endswith("num_batches_tracked"))
    del golden.tensors[missing]
    with pytest.raises(UsageError, match=f"no tensor '{missing}'"):
        golden.convert(golden.config, golden.tensors)


@pytest.mark.parametrize("name", NAMES + STAGED)
def test_what_ours_has_not_is_refused(name: str) -> None:
    """Norms of queries, for example: nothing is dropped in silence."""
    golden = load(name)
    golden.tensors["blocks.0.attn.q_norm.weight"] = torch.ones(8)
    with pytest.raises(
        UsageError, match=r"1 tensors .* no place for: blocks\.0\.attn\.q_norm\.weight"
    ):
        golden.convert(golden.config, golden.tensors)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hf-vit", {"hidden_act": "mish"}, "hidden_act = 'mish'.*'gelu' or 'relu'"),
        ("hf-vit", {"image_size": 16}, r"7 positions.* 16 patches \(4 x 4\) and 1 tokens"),
        ("timm-vit", {"img_size": 16}, r"7 positions.* 16 patches \(4 x 4\) and 1 tokens"),
        ("timm-vit", {"global_pool": "map"}, "global_pool 'map' with a class token"),
        ("timm-vit", {"embed_dim": 16}, "said to have embed_dim 16, but its tensors have 8"),
        ("timm-vit-mean", {"global_pool": "token"}, "global_pool 'token' without a class token"),
        ("timm-vit", {"act_layer": "hard_swish"}, "act_layer = 'hard_swish'"),
        ("timm-deit", {"norm_layer": "rmsnorm"}, "norm_layer = 'rmsnorm', which is not"),
        ("timm-deit", {"img_size": 16}, r"8 positions.* 16 patches \(4 x 4\) and 2 tokens"),
        ("hf-deit", {"hidden_act": "mish"}, "hidden_act = 'mish'"),
        ("timm-swin-padded", {"global_pool": "max"}, "global_pool = 'max'"),
        ("timm-swin-padded", {"window_size": 5}, r"49 distances, but windows of 5 x 5 have 81"),
        ("timm-swin-small", {"img_size": 64}, r"35 distances, but windows of 4 x 4 have 49"),
        ("timm-swin-padded", {"window_size": [4, 4, 7]}, r"window_size \(4, 4, 7\)"),
        ("hf-swin-padded", {"use_absolute_embeddings": True}, "use_absolute_embeddings"),
        ("hf-swin-padded", {"layer_norm_eps": 1e-12}, "layer_norm_eps = 1e-12"),
        ("torchvision-swin-padded", {"norm_layer": "x"}, "norm_layer"),
        ("hf-cvt-odd", {"cls_token": [False, False]}, r"cls_token \(False, False\)"),
        ("hf-cvt-odd", {"stride_q": [2, 2]}, "stride_q = 2"),
        ("hf-cvt-odd", {"qkv_projection_method": ["avg", "avg"]}, "qkv_projection_method = 'avg'"),
        ("timm-coatnet_0-wide", {"block_type": ["C", "T", "C", "T"]}, "block_type"),
        ("timm-coatnet_0-wide", {"transformer_rel_pos_type": "mlp"}, "rel_pos_type = 'mlp'"),
        (
            "timm-coatnet_0-wide",
            {"conv_pool_type": "max"},
            "they must be equal",
        ),
    ],
)
def test_what_cannot_be_mapped_is_refused(name: str, change: dict[str, Any], message: str) -> None:
    golden = load(name)
    with pytest.raises(UsageError, match=message):
        golden.convert(golden.config | change, golden.tensors)


@pytest.mark.parametrize("name", ["hf-vit", "timm-vit"])
def test_a_file_of_another_kind_is_refused(name: str) -> None:
    golden = load(name)
    kept = {key: t for key, t in golden.tensors.items() if "layer." not in key and "bl" not in key}
    with pytest.raises(UsageError, match="check that the file is complete and of this kind"):
        golden.convert(golden.config, kept)
