"""A trained model for images of another size: positions and bias tables are interpolated.

What is learned for each place or distance is fitted to the new grid; all else stays as it is.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from torch import Tensor

from manyheads.models.cct import CctConfig
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.presets import Config
from manyheads.models.swin import SwinConfig
from manyheads.models.vit import POOLS, VitConfig
from manyheads.nn.positions import ANTIALIASED, resize_grid
from manyheads.nn.relative import resize_bias

State = dict[str, Tensor]
C = TypeVar("C", bound=Config)
POSITIONS = "positions.table"

Size = tuple[int, int]
# How each library interpolates positions. Hugging Face's bicubic curve is another than that of
# antialiasing, torchvision keeps the corners where they are, and so did Google's spline of order 1.
CURVES: dict[str, Mapping[str, Any]] = {
    "timm": ANTIALIASED,
    "hf": {"mode": "bicubic", "align_corners": False},
    "torchvision": {"mode": "bicubic", "align_corners": True},
    "google": {"mode": "bilinear", "align_corners": True},
}


def resize(
    config: C, state: Mapping[str, Tensor], size: Size, library: str = "timm"
) -> tuple[C, State]:
    """Fit a model of images to another size, not necessarily square.

    Args:
        config: of the model.
        state: its state dict, which is left alone.
        size: height and width of the images, in pixels.
        library: whose way of interpolating positions to take.

    Returns:
        The Config and the state dict of the model for that size.

    Raises:
        UsageError: a ViT cannot cut such an image into whole patches.
    """
    resized = replace(config, height=size[0], width=size[1])  # type: ignore[arg-type]
    return resized, dict(state) | _tables(config, resized, state, library)


def _tables(old: Config, new: Config, state: Mapping[str, Tensor], library: str) -> State:
    """Interpolate what depends on the size."""
    if isinstance(old, VitConfig | CctConfig) and isinstance(new, VitConfig | CctConfig):
        if POSITIONS not in state:  # formulas, or none
            return {}
        extra, curve = POOLS[old.pool].extra, CURVES[library]
        return {POSITIONS: resize_grid(state[POSITIONS], old.grid, new.grid, extra, curve)}
    if isinstance(old, SwinConfig) and isinstance(new, SwinConfig):
        return _biases(state, dict(enumerate(zip(old.windows, new.windows, strict=True))))
    if isinstance(old, CoatnetConfig) and isinstance(new, CoatnetConfig):
        return _biases(state, dict(enumerate(zip(old.grids, new.grids, strict=True))))
    return {}


def _biases(
    state: Mapping[str, Tensor], sizes: Mapping[int, tuple[tuple[int, int], tuple[int, int]]]
) -> State:
    """Interpolate the bias tables of each stage from its old grid or window to its new one."""
    tables = {}
    for name, table in state.items():
        if name.endswith(".bias.table"):  # stages.2.0.attention.bias.table
            old, new = sizes[int(name.split(".")[1])]
            tables[name] = resize_bias(table, old, new)
    return tables
