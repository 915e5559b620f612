"""Converted image encoders give their libraries' logits, pooled vectors and token vectors.

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
from manyheads.models.convert.families import CONVERTERS, TIMM
from manyheads.models.convert.names import understand
from manyheads.models.presets import build
from manyheads.models.resize import resize

FOLDER = Path(__file__).parents[1] / "golden" / "encoders"
NAMES = sorted(path.stem for path in FOLDER.iterdir())
every = pytest.mark.parametrize("name", NAMES)


@dataclass(frozen=True)
class Golden:
    kind: str
    settings: dict[str, Any]
    tensors: dict[str, Tensor]
    images: Tensor
    answer: Tensor
    tokens: Tensor

    def convert(self, **settings: Any) -> tuple[Any, dict[str, Tensor]]:
        return CONVERTERS[self.kind](self.settings | settings, self.tensors)

    @property
    def size(self) -> tuple[int, int]:
        return self.images.shape[2], self.images.shape[3]


def load(name: str) -> Golden:
    with safe_open(FOLDER / f"{name}.safetensors", framework="pt") as file:
        about = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    found = [tensors.pop(key) for key in ("images", "answer", "tokens")]
    weights = {key.removeprefix("weights."): tensor for key, tensor in tensors.items()}
    return Golden(about["kind"], json.loads(about["settings"]), weights, *found)


@every
def test_converted_encoders_answer_the_same(name: str) -> None:
    """Within 1e-4 of the largest number; at another image size too."""
    golden = load(name)
    config, state = golden.convert()
    if (config.height, config.width) != golden.size:
        assert name.endswith("resized")
        config, state = resize(config, state, golden.size, golden.kind.partition(" ")[0])
    model = build(config).eval()
    model.load_state_dict(state)
    with torch.inference_mode():
        found = model(golden.images), model.features(golden.images)
    for ours, theirs in zip(found, (golden.answer, golden.tokens), strict=True):
        assert ours.shape == theirs.shape
        assert (theirs[0] - theirs[1]).abs().max() > 0.01 * theirs.abs().max()
        assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


@every
def test_every_tensor_matters_or_is_known_not_to(name: str) -> None:
    """A missing one is named, an additional one is refused."""
    golden = load(name)
    left = dict(golden.tensors)
    del golden.tensors[next(key for key in sorted(left) if "layer" in key or "blocks" in key)]
    with pytest.raises(UsageError, match="tensor"):
        golden.convert()
    golden.tensors.update(left | {"extra.gamma": torch.ones(8)})
    with pytest.raises(UsageError, match=r"no place for: extra\.gamma"):
        golden.convert()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "hf-clip",
            {"activation": "quick-gelu", "embedding_norm": True, "patch_bias": False, "classes": 0},
        ),
        ("hf-clip-classifier", {"pool": "patch-mean", "pool_norm": "none", "classes": 5}),
        ("hf-clip-projection", {"pool": "class", "pool_norm": "after", "classes": 6}),
        ("hf-siglip", {"activation": "gelu-tanh", "pool": "map", "classes": 0}),
        ("hf-siglip-classifier", {"pool": "mean", "classes": 5}),
        ("hf-dinov2", {"layer_scale": 1.0, "pool": "class", "registers": 0}),
        ("hf-dinov2-swiglu", {"activation": "swiglu", "pool": "class-and-mean"}),
        ("hf-dinov2-registers", {"registers": 4, "pool": "class-and-mean"}),
        ("hf-vit-encoder", {"representation": 8, "classes": 0}),
        ("hf-deit-one-head", {"registers": 1, "pool": "class", "classes": 5}),
        ("timm-dinov2-swiglu", {"activation": "swiglu", "registers": 2, "layer_scale": 1e-5}),
        ("timm-deit3", {"layer_scale": 1e-5, "registers": 0, "pool": "class"}),
        ("timm-registers-mean", {"registers": 2, "pool": "mean", "pool_norm": "after"}),
    ],
)
def test_what_the_config_says(name: str, parts: dict[str, Any]) -> None:
    config, _ = load(name).convert()
    assert {key: getattr(config, key) for key in parts} == parts


def test_positions_of_patches_alone_leave_the_tokens_in_front_without() -> None:
    """DeiT III and DINOv2 with registers: zeros, which add nothing."""
    _, state = load("timm-deit3").convert()
    assert not state["positions.table"][0].any()
    _, state = load("hf-dinov2-registers").convert()
    table = state["positions.table"]
    assert table[0].any()
    assert not table[1:5].any()
    assert table[5].any()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hf-clip", {"hidden_act": "mish"}, "hidden_act = 'mish'; only 'quick_gelu' or 'relu'"),
        ("hf-siglip", {"image_size": 16}, "4 positions"),
        ("hf-dinov2", {"use_swiglu_ffn": True}, "no tensor .*weights_out.weight"),
        ("hf-vit-encoder", {"pooler_act": "relu"}, "pooler_act = 'relu'; only 'tanh'"),
        ("timm-clip", {"act_layer": "hard_swish"}, "act_layer = 'hard_swish'"),
        ("timm-siglip", {"global_pool": "avg"}, "global_pool 'avg' without a class token and with"),
        ("timm-dinov2", {"global_pool": "map"}, "global_pool 'map' with a class token and without"),
    ],
)
def test_what_cannot_be_mapped_is_refused(name: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(name).convert(**change)


def test_a_text_encoder_beside_it_is_refused() -> None:
    golden = load("hf-clip-projection")
    golden.tensors["text_model.final_layer_norm.weight"] = torch.ones(8)
    with pytest.raises(UsageError, match="has a text encoder"):
        golden.convert()


def test_files_with_and_without_a_prefix_are_the_same() -> None:
    """Version 4 of transformers writes vision_model. in front, and a buffer of positions."""
    golden = load("hf-clip")
    old = {f"vision_model.{name}": tensor for name, tensor in golden.tensors.items()}
    old["vision_model.embeddings.position_ids"] = torch.arange(5)[None]
    config, state = golden.convert()
    again, other = CONVERTERS["hf clip"]({"vision_config": golden.settings}, old)
    assert again == config
    assert state.keys() == other.keys()
    assert all(torch.equal(state[name], other[name]) for name in state)


def test_the_second_table_of_an_old_file_counts() -> None:
    """Its defaults too: transformers reads `vision_config_dict` as a whole configuration."""
    golden = load("hf-clip")
    old = {"vision_config": {"hidden_act": "gelu"}, "vision_config_dict": golden.settings}
    old["vision_config_dict"].pop("hidden_act")
    config, _ = CONVERTERS["hf clip"](old, golden.tensors)
    assert config.activation == "quick-gelu"
    assert config.heads == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "vit_base_patch32_clip_quickgelu_224.openai",
            {"num_heads": 12, "act_layer": "quick_gelu", "norm_eps": 1e-5, "img_size": 224},
        ),
        ("vit_so400m_patch14_siglip_384", {"embed_dim": 1152, "num_heads": 16, "patch_size": 14}),
        ("vit_so400m_patch16_siglip_gap_256", {"act_layer": "gelu_tanh", "global_pool": "avg"}),
        ("vit_large_patch16_siglip_512", {"act_layer": "gelu_tanh"}),
        ("vit_giant_patch14_reg4_dinov2.lvd142m", {"embed_dim": 1536, "num_heads": 24}),
        ("deit3_medium_patch16_224", {"embed_dim": 512, "num_heads": 8}),
        ("vit_little_patch16_reg4_gap_256", {"num_heads": 5, "global_pool": "avg"}),
    ],
)
def test_architectures_of_timm_by_name(name: str, said: dict[str, Any]) -> None:
    _, found = understand(name, TIMM)
    assert {key: found.get(key) for key in said} == said


@pytest.mark.parametrize(
    "name",
    [
        "vit_base_patch16_gap_224",  # 16 heads
        "vit_base_patch16_dinov3",  # rotary positions
        "eva02_base_patch14_224",
        "vit_pwee_patch16_reg1_gap_256",  # parallel blocks
        "vit_so150m_patch16_reg4_map_256",  # registers before attention pooling
        "vit_base_patch14_reg1_tipsv2",
        "naflexvit_base_patch16_siglip",
    ],
)
def test_architectures_with_other_parts_are_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match=r"family|word"):
        understand(name, TIMM)
