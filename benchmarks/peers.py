"""Models of other libraries in the shape of ours, from the bench environment."""

import functools
import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.convert import marian_weights as marian
from manyheads.models.transformer import TransformerConfig
from manyheads.models.vit import VitConfig

# Named with their versions in every result.
PEERS = ("timm", "transformers", "torchvision", "vit-pytorch", "ctranslate2")


def timm_vit(config: VitConfig, **arguments: Any) -> nn.Module:
    """Build timm's VisionTransformer with fresh weights."""
    timm = import_peer("timm.models.vision_transformer")
    return timm.VisionTransformer(**timm_arguments(config), **arguments)


def timm_arguments(config: VitConfig) -> dict[str, Any]:
    """Write our Config as arguments of VisionTransformer."""
    pooling = (
        {"global_pool": "token"}
        if config.pool == "class"
        else {"global_pool": "avg", "class_token": False, "fc_norm": False}
    )
    return pooling | {
        "img_size": (config.height, config.width),
        "patch_size": config.patch,
        "in_chans": config.channels,
        "num_classes": config.classes,
        "embed_dim": config.dim,
        "depth": config.layers,
        "num_heads": config.heads,
        "mlp_ratio": config.ffn_dim / config.dim,
    }


def hf_vit(config: VitConfig, **arguments: Any) -> nn.Module:
    """Build Hugging Face's ViTForImageClassification with fresh weights."""
    transformers = transformers_library()
    shape = transformers.ViTConfig(
        image_size=(config.height, config.width),
        patch_size=config.patch,
        num_channels=config.channels,
        num_labels=config.classes,
        hidden_size=config.dim,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.ffn_dim,
        **arguments,
    )
    return transformers.ViTForImageClassification(shape)


def torchvision_vit(config: VitConfig) -> nn.Module:
    """Build torchvision's VisionTransformer with fresh weights; square images only."""
    torchvision = import_peer("torchvision.models.vision_transformer")
    model: nn.Module = torchvision.VisionTransformer(
        image_size=config.height,
        patch_size=config.patch,
        num_layers=config.layers,
        num_heads=config.heads,
        hidden_dim=config.dim,
        mlp_dim=config.ffn_dim,
        num_classes=config.classes,
    )
    return model


def vit_pytorch(config: VitConfig) -> nn.Module:
    """Build vit-pytorch's ViT with fresh weights: no bias on queries, keys and values."""
    library = import_peer("vit_pytorch.vit")
    model: nn.Module = library.ViT(
        image_size=(config.height, config.width),
        patch_size=config.patch,
        num_classes=config.classes,
        dim=config.dim,
        depth=config.layers,
        heads=config.heads,
        mlp_dim=config.ffn_dim,
        channels=config.channels,
        dim_head=config.dim // config.heads,
    )
    return model


def hf_marian(config: TransformerConfig, state: Mapping[str, Tensor] | None = None) -> nn.Module:
    """Build Hugging Face's MarianMTModel with fresh weights or ours; dropout where ours has it."""
    transformers = transformers_library()
    model = transformers.MarianMTModel(transformers.MarianConfig(**marian.settings(config)))
    if state is not None:
        _, tensors = marian.write(config, state)
        # Tied matrices are stored once, positions not at all; nothing else may be missing.
        model.load_state_dict(model.state_dict() | tensors)
    return model


def transformers_library() -> ModuleType:
    """Import transformers, and keep it quiet."""
    transformers = import_peer("transformers")
    transformers.utils.logging.disable_progress_bar()
    return transformers


def import_peer(name: str) -> ModuleType:
    _declare_detection_operators()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"The peer {name.partition('.')[0]!r} cannot be imported ({error}). `make bench` and "
            "`make parity` set up an environment with all peers in .venv-bench and use it."
        ) from error


@functools.cache  # a Library takes its operators with it when it goes
def _declare_detection_operators() -> torch.library.Library | None:
    """Let torchvision, which timm and transformers import, be imported beside a CPU build of torch.

    Its compiled part is made for another build and does not load; then the schemas of two
    operators are missing, which nothing here calls.
    """
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return None
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
    return None
