"""A model for images of another size: positions are interpolated as its library does."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.models.vit import VitConfig

Size = tuple[int, int]
# Ours is timm's. Hugging Face's bicubic curve is another than that of antialiasing, torchvision
# keeps the corners where they are, and so did Google's spline of order 1.
INTERPOLATION: dict[str, dict[str, Any]] = {
    "timm": {"mode": "bicubic", "align_corners": False, "antialias": True},
    "hf": {"mode": "bicubic", "align_corners": False},
    "torchvision": {"mode": "bicubic", "align_corners": True},
    "google": {"mode": "bilinear", "align_corners": True},
}


def resize(
    config: Any, state: Mapping[str, Tensor], size: Size, library: str = "timm"
) -> tuple[Any, dict[str, Tensor]]:
    """Return the Config and the weights of the same model for images of another size.

    Args:
        config: of a model of images.
        state: its weights; what does not depend on the size is returned as it is.
        size: height and width wanted.
        library: whose way of interpolation to take.

    Raises:
        UsageError: the model cannot be built for this size.
    """
    resized = replace(config, height=size[0], width=size[1])
    changed = dict(state)
    for kind, change in RESIZES.items():
        if isinstance(config, kind):
            changed |= change(config, resized, state, library)
    return resized, changed


def _positions(
    config: VitConfig, resized: VitConfig, state: Mapping[str, Tensor], library: str
) -> dict[str, Tensor]:
    """Interpolate the grid; tokens without a place keep their rows."""
    if config.grid == resized.grid or "positions.table" not in state:
        return {}
    table = state["positions.table"]
    extra = len(table) - config.grid[0] * config.grid[1]
    grid = table[extra:].float().unflatten(0, config.grid).permute(2, 0, 1)[None]
    grid = F.interpolate(grid, size=resized.grid, **INTERPOLATION[library])
    rows = grid[0].flatten(1).T.to(table.dtype)
    return {"positions.table": torch.cat((table[:extra], rows))}


Resize = Callable[[Any, Any, Mapping[str, Tensor], str], dict[str, Tensor]]
# A line for each kind whose tensors depend on the size; convolutions are not among them.
RESIZES: dict[type, Resize] = {VitConfig: _positions}
