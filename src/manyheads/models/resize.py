"""A trained model for images of another size: positions and bias tables are interpolated.

What is learned for each place or distance is fitted to the new grid; all else stays as it is.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from torch import Tensor

from manyheads.models.cct import CctConfig
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.presets import Config
from manyheads.models.swin import SwinConfig
from manyheads.models.vit import POOLS, VitConfig
from manyheads.nn.positions import resize_grid
from manyheads.nn.relative import resize_bias

State = dict[str, Tensor]
C = TypeVar("C", bound=Config)
POSITIONS = "positions.table"


def resize(config: C, state: Mapping[str, Tensor], height: int, width: int) -> tuple[C, State]:
    """Fit a model of images to another size, not necessarily square.

    Args:
        config: of the model.
        state: its state dict, which is left alone.
        height: of the images, in pixels.
        width: the same.

    Returns:
        The Config and the state dict of the model for that size.

    Raises:
        UsageError: a ViT cannot cut such an image into whole patches.
    """
    resized = replace(config, height=height, width=width)  # type: ignore[arg-type]
    return resized, dict(state) | _tables(config, resized, state)


def _tables(old: Config, new: Config, state: Mapping[str, Tensor]) -> State:
    """Interpolate what depends on the size."""
    if isinstance(old, VitConfig | CctConfig) and isinstance(new, VitConfig | CctConfig):
        if POSITIONS not in state:  # formulas, or none
            return {}
        extra = POOLS[old.pool].extra
        return {POSITIONS: resize_grid(state[POSITIONS], old.grid, new.grid, extra)}
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
