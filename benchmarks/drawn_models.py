"""Models of other libraries, drawn by seed from the options of their constructors.

    python -m benchmarks.drawn_models --count 100 --seed 1

Unusual options are included. Each model is converted from its own files, as a user's would be, and
then has to answer as its library does, or to be refused with a reason.
"""

import argparse
import functools
import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from benchmarks import marian
from benchmarks.image_models import randomise
from benchmarks.peers import import_peer, transformers_library
from manyheads.convert.classifiers import from_images
from manyheads.errors import ManyheadsError
from manyheads.predict.load import load

BAR = 1e-4  # largest difference, relative to the largest number of the answer
MOST = 3  # options that a model has besides the usual ones
TRIES = 20  # draws until the other library can build the model, too
Options = dict[str, Any]
Outcome = Literal["equal", "refused", "wrong"]

ACTIVATIONS = ["relu", "gelu", "silu", "mish", "hard_swish", "gelu_tanh", "quick_gelu", "tanh"]
HF_ACTIVATIONS = [
    *("relu", "gelu", "silu", "mish", "quick_gelu", "gelu_new", "gelu_pytorch_tanh", "selu"),
    *("tanh", "relu6"),
]
EPSILONS = [1e-12, 1e-6, 1e-5, 1e-3]


@dataclass(frozen=True)
class Kind:
    """Models of one class of another library."""

    names: Sequence[str]  # of timm's architectures, or of Hugging Face's classes
    base: Options  # makes the model small
    options: Mapping[str, Sequence[Any]]
    size: tuple[int, int] = (32, 32)  # of the images where no option says it

    def draw(self, chance: random.Random) -> tuple[str, Options]:
        """Draw a name, and some options over the base."""
        chosen = chance.sample(sorted(self.options), chance.randint(1, MOST))
        options = {key: chance.choice(self.options[key]) for key in chosen}
        return chance.choice(self.names), self.base | options


# --- timm ---------------------------------------------------------------------------------------

# What makes CNNs small: it is seen in their tensors, and no config.json tells it.
UNTOLD: dict[str, Options] = {
    "resnet": {"layers": [1, 1, 1, 1], "channels": [16, 16, 32, 32]},
    "resnetv2": {"layers": [1, 1], "channels": [128, 128], "stem_chs": 32, "stem_type": "fixed"},
    "vgg": {"cfg": [4, "M", 8, "M", 8, 8, "M", 4, 4, "M", 4, 4, "M"]},
}
TIMM_SHARED: dict[str, Sequence[Any]] = {
    "in_chans": [1, 3, 4],
    "num_classes": [0, 1, 7],
    "act_layer": ACTIVATIONS,
    "drop_rate": [0.1],
}
TIMM_VIT: dict[str, Sequence[Any]] = {
    **TIMM_SHARED,
    "img_size": [32, 48, [32, 48]],
    "patch_size": [4, 16],
    "global_pool": ["", "token", "avg", "avgmax", "max", "map"],
    "num_heads": [1, 4],
    "depth": [2],
    "mlp_ratio": [2.0, 3.0],
    "qkv_bias": [False],
    "qk_norm": [True],
    "scale_attn_norm": [True],
    "scale_mlp_norm": [True],
    "proj_bias": [False],
    "init_values": [1e-5, 0.1],
    "class_token": [False],
    "pos_embed": ["", "none", "learn"],
    "no_embed_class": [True],
    "reg_tokens": [0, 1, 4],
    "pre_norm": [True, False],
    "final_norm": [False],
    "fc_norm": [True, False],
    "pool_include_prefix": [True],
    "dynamic_img_size": [True],
    "dynamic_img_pad": [True],
    "norm_layer": ["layernorm", "rmsnorm"],
    "embed_norm_layer": ["layernorm"],
    "attn_drop_rate": [0.1],
}
TIMM = {
    "timm vit": Kind(
        [
            *("vit_tiny_patch16_224", "vit_base_patch16_clip_224", "vit_base_patch16_siglip_224"),
            *("vit_base_patch32_clip_quickgelu_224", "vit_small_patch14_dinov2"),
            *("vit_base_patch14_reg4_dinov2", "deit3_small_patch16_224", "deit_tiny_patch16_224"),
            *("vit_medium_patch16_reg4_gap_256", "deit_tiny_distilled_patch16_224"),
        ],
        {"img_size": 32, "patch_size": 8, "embed_dim": 16, "depth": 1, "num_heads": 2},
        TIMM_VIT,
    ),
    "timm resnet": Kind(
        ["resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2"],
        {"num_classes": 5},
        {
            **TIMM_SHARED,
            "output_stride": [8, 16, 32],
            "global_pool": ["", "avg", "max", "avgmax", "fast"],
            "cardinality": [1, 2],
            "base_width": [32, 64],
            "stem_width": [16],
            "stem_type": ["", "deep", "deep_tiered"],
            "replace_stem_pool": [True],
            "block_reduce_first": [2],
            "down_kernel_size": [3],
            "avg_down": [True],
            "aa_layer": ["avg", "blur"],
            "norm_layer": ["batchnorm2d", "groupnorm"],
            "block_args": [{"attn_layer": "se"}],
            "zero_init_last": [False],
        },
    ),
    "timm bit": Kind(
        ["resnetv2_50x1_bit", "resnetv2_101x1_bit"],
        {"num_classes": 5},
        {
            **TIMM_SHARED,
            "output_stride": [4, 16],
            "global_pool": ["", "avg", "max"],
            "stem_type": ["", "fixed", "same", "deep"],
            "avg_down": [True],
            "preact": [False, True],
            "basic": [True],
            "bottle_ratio": [0.5],
            "width_factor": [2],
            "norm_layer": ["groupnorm", "batchnorm2d"],
        },
        (36, 48),
    ),
    "timm swin": Kind(
        ["swin_tiny_patch4_window7_224"],
        {
            **{"img_size": 32, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4]},
            **{"window_size": 4, "num_classes": 5},
        },
        {
            **{key: TIMM_SHARED[key] for key in ("in_chans", "num_classes", "drop_rate")},
            "img_size": [64, [32, 64]],
            "patch_size": [2],
            "global_pool": ["", "avg", "max"],
            "window_size": [2, 8, [2, 4]],
            "head_dim": [4],
            "always_partition": [True],
            "strict_img_size": [False],
            "mlp_ratio": [2.0],
            "qkv_bias": [False],
            "norm_layer": ["layernorm", "rmsnorm"],
        },
    ),
    "timm coatnet": Kind(
        ["coatnet_0_rw_224", "coatnet_1_rw_224", "coatnet_0_224"],
        {
            **{"img_size": 64, "embed_dim": [32] * 4, "depths": [1, 1, 1, 1], "stem_width": 16},
            **{"num_classes": 5},
        },
        {
            "in_chans": [1, 3],
            "num_classes": [0, 7],
            "global_pool": ["", "avg", "max"],
            "img_size": [[64, 96]],
            "stem_bias": [True, False],
            "head_hidden_size": [24],
            "transformer_dim_head": [16],
            "transformer_expand_ratio": [2.0],
            "transformer_expand_first": [True, False],
            "transformer_shortcut_bias": [True, False],
            "transformer_attn_bias": [False],
            "transformer_pool_type": ["avg", "avg2", "max", "max2"],
            "transformer_rel_pos_type": ["bias", "bias_tf", "mlp"],
            "transformer_init_values": [1e-5],
            "transformer_act_layer": ACTIVATIONS,
            "transformer_norm_eps": [1e-5],
            "transformer_use_nchw_attn": [True],
            "conv_expand_output": [True, False],
            "conv_kernel_size": [5],
            "conv_group_size": [8],
            "conv_pre_norm_act": [True, False],
            "conv_output_bias": [True, False],
            "conv_stride_mode": ["pool", "1x1", "dw"],
            "conv_attn_early": [True, False],
            "conv_attn_layer": ["se", "eca"],
            "conv_attn_ratio": [0.5],
            "conv_act_layer": ACTIVATIONS,
            "conv_norm_eps": [1e-4],
            "conv_padding": ["same"],
        },
        (64, 64),
    ),
    "timm vgg": Kind(
        ["vgg11", "vgg11_bn"],
        {"num_classes": 5},
        {
            **TIMM_SHARED,
            "global_pool": ["avg", "max", ""],
            "output_stride": [32],
            "mlp_ratio": [0.5],
            "norm_layer": ["batchnorm2d"],
        },
    ),
}


def _timm(name: str, arguments: Options, folder: Path) -> nn.Module:
    family = "vgg" if name.startswith("vgg") else name.partition("_")[0]
    if family in ("vgg", "resnetv2"):  # their functions in timm do not let them be small
        asked = UNTOLD[family] | arguments
        layers = import_peer("timm.layers")
        for key, find in (
            ("act_layer", layers.get_act_layer),
            ("norm_layer", layers.get_norm_act_layer),
        ):
            if key in asked:
                asked[key] = find(asked[key])
        if family == "vgg":
            asked = {"norm_layer": nn.BatchNorm2d if name.endswith("_bn") else None} | asked
            model: nn.Module = import_peer("timm.models.vgg").VGG(**asked)
        else:
            asked["conv_layer"] = functools.partial(layers.StdConv2d, eps=1e-8)
            model = import_peer("timm.models.resnetv2").ResNetV2(**asked)
    else:
        untold = UNTOLD["resnet"] if "resne" in name else {}
        model = import_peer("timm").create_model(name, **untold | arguments)
    randomise(model)
    tensors = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    about = {"architecture": name, "model_args": arguments}
    (folder / "config.json").write_text(json.dumps(about), encoding="utf-8")
    return model


# --- Hugging Face -------------------------------------------------------------------------------

HF_SHARED: dict[str, Sequence[Any]] = {
    "num_channels": [1, 3, 4],
    "hidden_act": HF_ACTIVATIONS,
    "num_labels": [1, 7],
    "problem_type": ["regression", "multi_label_classification"],
    "output_hidden_states": [True],
}
HF_VIT: dict[str, Sequence[Any]] = {
    **HF_SHARED,
    "layer_norm_eps": EPSILONS,
    "num_attention_heads": [1, 4],
    "num_hidden_layers": [2],
    "intermediate_size": [17],
    "image_size": [16, [8, 16]],
    "patch_size": [2, 8],
    "qkv_bias": [False],
    "pooler_act": ["relu"],
    "pooler_output_size": [6],
    "encoder_stride": [8],
    "hidden_dropout_prob": [0.1],
    "attention_probs_dropout_prob": [0.1],
    "chunk_size_feed_forward": [1],
}
HF_BASE: Options = {
    "image_size": 8,
    "patch_size": 4,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
HF_CNN: dict[str, Sequence[Any]] = {
    **HF_SHARED,
    "depths": [[2, 1]],
    "hidden_sizes": [[32, 32], [64, 32]],
    "embedding_size": [8],
}
HF = {
    "hf vit": Kind(["ViTForImageClassification"], HF_BASE | {"intermediate_size": 16}, HF_VIT),
    "hf deit": Kind(
        ["DeiTForImageClassification", "DeiTForImageClassificationWithTeacher"],
        HF_BASE | {"intermediate_size": 16},
        HF_VIT,
    ),
    "hf resnet": Kind(
        ["ResNetForImageClassification"],
        {"embedding_size": 4, "hidden_sizes": [8, 16], "depths": [1, 2], "num_labels": 5},
        {
            **HF_CNN,
            "layer_type": ["basic", "bottleneck"],
            "downsample_in_first_stage": [True],
            "downsample_in_bottleneck": [True],
        },
    ),
    "hf bit": Kind(
        ["BitForImageClassification"],
        {
            **{"embedding_size": 8, "hidden_sizes": [32, 64], "depths": [1, 2]},
            **{"num_groups": 4, "num_labels": 5},
        },
        {
            **HF_CNN,
            "layer_type": ["preactivation", "bottleneck"],
            "global_padding": ["same", "valid", None],
            "num_groups": [2, 8],
            "embedding_dynamic_padding": [True],
            "output_stride": [8, 16],
            "width_factor": [2],
            "drop_path_rate": [0.1],
        },
    ),
    "hf swin": Kind(
        ["SwinForImageClassification"],
        {
            **{"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [2, 2]},
            **{"num_heads": [2, 4], "window_size": 4, "num_labels": 5},
        },
        {
            **HF_SHARED,
            "image_size": [64, [32, 64]],
            "window_size": [2, 8, 3],
            "mlp_ratio": [2.0],
            "qkv_bias": [False],
            "use_absolute_embeddings": [True],
            "layer_norm_eps": EPSILONS,
            "patch_size": [2],
        },
    ),
    "hf cvt": Kind(
        ["CvtForImageClassification"],
        {"embed_dim": [8, 16, 16], "num_heads": [1, 2, 2], "depth": [1, 2, 3], "num_labels": 5},
        {
            **{key: HF_SHARED[key] for key in ("num_channels", "num_labels", "problem_type")},
            "patch_sizes": [[7, 3, 3], [3, 3, 3]],
            "patch_stride": [[4, 2, 2], [2, 2, 2]],
            "patch_padding": [[2, 1, 1], [0, 1, 1]],
            "mlp_ratio": [[2.0, 2.0, 2.0], [4.0, 2.0, 4.0]],
            "qkv_bias": [[False, False, False], [True, True, False]],
            "cls_token": [[False, False, False], [False, False, True], [False, True, True]],
            "qkv_projection_method": [["avg"] * 3, ["dw_bn", "dw_bn", "avg"]],
            "kernel_qkv": [[3, 3, 5]],
            "padding_kv": [[1, 1, 0], [0, 0, 0]],
            "padding_q": [[1, 1, 1], [2, 2, 2]],
            "stride_kv": [[2, 2, 1], [1, 1, 1]],
            "stride_q": [[2, 1, 1]],
            "layer_norm_eps": EPSILONS,
        },
        (64, 64),
    ),
    "hf clip": Kind(
        ["CLIPVisionModel", "CLIPVisionModelWithProjection"],
        HF_BASE | {"intermediate_size": 16, "projection_dim": 6},
        {**HF_VIT, "projection_dim": [8]},
    ),
    "hf siglip": Kind(
        ["SiglipVisionModel"],
        HF_BASE | {"intermediate_size": 12},
        {**HF_VIT, "vision_use_head": [False]},
    ),
    "hf dinov2": Kind(
        ["Dinov2Model", "Dinov2ForImageClassification"],
        HF_BASE | {"mlp_ratio": 2},
        {
            **HF_VIT,
            "mlp_ratio": [3, 4],
            "layerscale_value": [0.1],
            "use_swiglu_ffn": [True],
            "use_mask_token": [False],
            "apply_layernorm": [False],
            "reshape_hidden_states": [False],
        },
    ),
    "hf dinov2 with registers": Kind(
        ["Dinov2WithRegistersModel", "Dinov2WithRegistersForImageClassification"],
        HF_BASE | {"mlp_ratio": 2},
        {**HF_VIT, "num_register_tokens": [0, 1], "use_swiglu_ffn": [True]},
    ),
}
HF_ANSWERS = ("logits", "image_embeds", "pooler_output")


class _Answer(nn.Module):
    """A model of Hugging Face, answering with a tensor."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        found = self.model(pixel_values=images)
        given = (getattr(found, name, None) for name in HF_ANSWERS)
        answer = next((each for each in given if each is not None), None)
        if answer is None:  # the mean of the tokens is what ours has
            answer = found.last_hidden_state.mean(dim=1)
        return torch.as_tensor(answer)


def _hf(name: str, arguments: Options, folder: Path) -> nn.Module:
    library = transformers_library()
    kind = getattr(library, name)
    model = kind(kind.config_class(**arguments))
    randomise(model)
    model.save_pretrained(folder)
    return _Answer(model.eval())


# --- Marian -------------------------------------------------------------------------------------

MARIAN = Kind(
    ["MarianMTModel"],
    marian.TINY,
    {
        "activation_function": HF_ACTIVATIONS,
        "scale_embedding": [False],
        "encoder_layers": [1, 3],
        "decoder_layers": [2, 3],
        "encoder_attention_heads": [1, 4],
        "decoder_attention_heads": [1, 4],
        "encoder_ffn_dim": [12],
        "decoder_ffn_dim": [24],
        "max_position_embeddings": [9, 32],
        "tie_word_embeddings": [False],
        "share_encoder_decoder_embeddings": [False],
        "decoder_vocab_size": [20, 24],
        "normalize_before": [True],
        "normalize_embedding": [True],
        "static_position_embeddings": [False],
        "add_bias_logits": [True],
        "add_final_layer_norm": [True],
        "encoder_layerdrop": [0.1],
        "dropout": [0.1],
    },
)
KINDS = {**TIMM, **HF, "hf marian": MARIAN}


# --- What becomes of them -----------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A drawn model, and what becomes of it."""

    kind: str
    name: str
    options: Options  # without those that make it small
    outcome: Outcome
    reason: str


def drawn(count: int, seed: int) -> Iterator[Drawn]:
    """Draw models, of every kind in turn, and convert them."""
    for number in range(count):
        kind = [*KINDS][number % len(KINDS)]
        for attempt in range(TRIES):
            name, options = KINDS[kind].draw(random.Random(f"{seed} {number} {attempt}"))
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    convert = _theirs(kind, name, options, Path(folder))
                except Exception:  # the other library has no such model
                    continue
                outcome, reason = _outcome(convert)
            base = KINDS[kind].base
            unusual = {key: value for key, value in options.items() if base.get(key) != value}
            yield Drawn(kind, name, unusual, outcome, reason)
            break


def _theirs(kind: str, name: str, options: Options, folder: Path) -> Callable[[], float]:
    """Build a model of another library; return how much ours differs from it."""
    if kind == "hf marian":
        reference = marian._random(options)
        return reference.difference
    source, out, again = folder / "theirs", folder / "ours", folder / "again"
    source.mkdir()
    library: Literal["timm", "hf"] = "timm" if kind in TIMM else "hf"
    model = (_timm if library == "timm" else _hf)(name, options, source).eval()
    told = {"image_size": options.get("img_size", KINDS[kind].size), "num_channels": 3} | options
    size, channels = told["image_size"], int(told.get("in_chans", told["num_channels"]))
    height, width = (size, size) if isinstance(size, int) else size
    images = torch.randn(2, channels, height, width, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = model(images).clone()
    if not expected.isfinite().all() or not expected.abs().max() > 0:
        raise ValueError("no answer to compare with")

    def difference() -> float:
        made = from_images(library, str(source), out)
        if made.size != (height, width):  # of those whose files do not tell it
            from_images(library, str(source), again, image_size=(height, width))
        ours: Any = load(out if made.size == (height, width) else again)
        with torch.inference_mode():
            found = ours.model(images)
        if found.shape != expected.shape:
            return float("inf")
        return ((found - expected).abs().max() / expected.abs().max()).item()

    return difference


def _outcome(convert: Callable[[], float]) -> tuple[Outcome, str]:
    try:
        difference = convert()
    except ManyheadsError as error:
        return "refused", str(error).partition("\n")[0]
    except Exception as error:  # one that should not occur
        return "wrong", f"{type(error).__name__}: {error}".partition("\n")[0]
    return "equal" if difference <= BAR else "wrong", f"{difference:.1e}"


def wrong_share(count: int = 100, seed: int = 1) -> float:
    """Return the share that is neither equal nor refused."""
    return sum(each.outcome == "wrong" for each in drawn(count, seed)) / count


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found: Counter[Outcome] = Counter()
    for each in drawn(asked.count, asked.seed):
        found[each.outcome] += 1
        print(f"{each.outcome:7} {each.kind}, {each.name}, {each.options}: {each.reason}")
        sys.stdout.flush()
    print(", ".join(f"{found[name]} {name}" for name in ("equal", "refused", "wrong")))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
