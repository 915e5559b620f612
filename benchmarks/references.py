"""Tiny models of other libraries with random weights: what they hold, and what they answer."""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from benchmarks.peers import hf_vit, timm_arguments, timm_vit
from manyheads.models.convert.families import CONVERTERS
from manyheads.models.presets import build
from manyheads.models.resize import resize
from manyheads.models.vit import VitConfig

Library = Literal["transformers", "timm", "torchvision"]
TINY = VitConfig(height=8, width=12, patch=4, dim=8, layers=2, heads=2, ffn_dim=16, classes=5)
MEAN = replace(TINY, pool="mean")
SQUARE = replace(TINY, width=8, patch=2, dim=24, layers=4, heads=3, ffn_dim=96, classes=10)
SEED = 0


@dataclass(frozen=True)
class Reference:
    """A model as its library stores it, an input and the answer."""

    library: Library
    version: str
    config: Mapping[str, Any]  # can be written as JSON
    tensors: dict[str, Tensor]  # by the names of the library's own files
    images: Tensor
    logits: Tensor
    family: str = "vit"

    def difference(self) -> float:
        """Convert the model; return the largest difference, relative to the largest logit."""
        library = "hf" if self.library == "transformers" else self.library
        config, state = CONVERTERS[f"{library} {self.family}"](self.config, self.tensors)
        size = (self.images.shape[2], self.images.shape[3])
        config, state = resize(config, state, size, library)
        model = build(config).eval()
        model.load_state_dict(state)
        with torch.inference_mode():
            logits = model(self.images)
        return ((logits - self.logits).abs().max() / self.logits.abs().max()).item()


def references() -> dict[str, Callable[[], Reference]]:
    """List the references; each is built when it is called."""
    from benchmarks import vision

    return vision.references() | {
        "hf-vit": lambda: _hf(TINY),
        "hf-vit-relu-without-bias": lambda: _hf(TINY, qkv_bias=False, hidden_act="relu"),
        "hf-vit-square": lambda: _hf(SQUARE),
        "timm-vit": lambda: _timm(TINY),
        "timm-vit-mean": lambda: _timm(MEAN),
        "timm-vit-without-bias": lambda: _timm(TINY, qkv_bias=False, no_embed_class=True),
        "timm-vit-square": lambda: _timm(SQUARE),
    }


def randomise(module: nn.Module, dim: int, seed: int) -> None:
    """Draw every parameter anew: no zero bias and no unit norm can hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * dim**-0.5)
        for part in module.modules():
            if isinstance(part, nn.LayerNorm | nn.BatchNorm2d):
                part.weight.add_(1.0)
            if isinstance(part, nn.BatchNorm2d):
                for tensor in (part.running_mean, part.running_var):
                    assert tensor is not None
                    tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)


def _hf(shape: VitConfig, **arguments: Any) -> Reference:
    model: Any = hf_vit(shape, **arguments).eval()
    randomise(model, shape.dim, SEED)
    config, tensors = stored(model)
    images = _images(shape)
    with torch.inference_mode():
        logits = model(pixel_values=images).logits.clone()
    return Reference("transformers", version("transformers"), config, tensors, images, logits)


def stored(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what Hugging Face stores of a model: names in files are not those in memory."""
    with tempfile.TemporaryDirectory() as name:
        model.save_pretrained(name)
        folder = Path(name)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        # Loaded from bytes that stay: the files are about to go.
        tensors = {name: t.clone() for name, t in load_file(folder / "model.safetensors").items()}
    return config, tensors


def _timm(shape: VitConfig, **arguments: Any) -> Reference:
    model = timm_vit(shape, **arguments).eval()
    randomise(model, shape.dim, SEED)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    images = _images(shape)
    with torch.inference_mode():
        logits = model(images).clone()
    config = timm_arguments(shape) | arguments
    return Reference("timm", version("timm"), config, tensors, images, logits)


def _images(shape: VitConfig) -> Tensor:
    generator = torch.Generator().manual_seed(SEED)
    return torch.randn(2, shape.channels, shape.height, shape.width, generator=generator)
