"""A trained model for images of another size: positions and bias tables are interpolated.

What is learned for each place or distance is fitted to the new grid; all else stays as it is.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from torch import Tensor

from manyheads.models.cct import CctConfig
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.presets import Config
from manyheads.models.swin import SwinConfig
from manyheads.models.vit import POOLS, VitConfig
from manyheads.nn.positions import ANTIALIASED, resize_grid
from manyheads.nn.relative import resize_bias, stretch_bias

State = dict[str, Tensor]
C = TypeVar("C", bound=Config)
POSITIONS = "positions.table"
DISTANCES = "positions.distances.table"

Size = tuple[int, int]
# How each library interpolates positions, where it is not as here (timm's way is ours). Hugging
# Face's bicubic curve is another than that of antialiasing, torchvision keeps the corners where
# they are, and so did Google's spline of order 1.
CURVES: dict[str, Mapping[str, Any]] = {
    "hf": {"mode": "bicubic", "align_corners": False},
    "torchvision": {"mode": "bicubic", "align_corners": True},
    "google": {"mode": "bilinear", "align_corners": True},
}
# timm's models alone change the size of bias tables: the others' windows stay as they are.
BIASES: dict[str, Callable[[Tensor, Size, Size], Tensor]] = {"timm": stretch_bias}


def resize(
    config: C, state: Mapping[str, Tensor], size: Size, library: str | None = None
) -> tuple[C, State]:
    """Fit a model of images to another size, not necessarily square.

    Args:
        config: of the model.
        state: its state dict, which is left alone.
        size: height and width of the images, in pixels.
        library: whose way of interpolating to take, if weights come from there.

    Returns:
        The Config and the state dict of the model for that size.

    Raises:
        UsageError: a ViT cannot cut such an image into whole patches.
    """
    resized = replace(config, height=size[0], width=size[1])  # type: ignore[arg-type]
    return resized, refit(config, resized, state, library)


def refit(old: Config, new: Config, state: Mapping[str, Tensor], library: str | None) -> State:
    """Fit a state dict to another Config of the same model, where its tables depend on the size.

    What differs between other models stays as it is.
    """
    fitted = dict(state)
    if isinstance(old, VitConfig | CctConfig) and isinstance(new, VitConfig | CctConfig):
        if POSITIONS in state:  # else formulas, or none
            extra, curve = POOLS[old.pool].extra, CURVES.get(library or "", ANTIALIASED)
            fitted[POSITIONS] = resize_grid(state[POSITIONS], old.grid, new.grid, extra, curve)
        if DISTANCES in state:
            fitted[DISTANCES] = resize_bias(state[DISTANCES], old.grid, new.grid)
        return fitted
    stages: Iterable[tuple[Size, Size]] = ()
    if isinstance(old, SwinConfig) and isinstance(new, SwinConfig):
        stages = zip(old.windows, new.windows, strict=False)
    elif isinstance(old, CoatnetConfig) and isinstance(new, CoatnetConfig):
        stages = zip(old.grids, new.grids, strict=False)
    fit = BIASES.get(library or "", resize_bias)
    for stage, (before, after) in enumerate(stages):
        for name, table in state.items():
            if name.startswith(f"stages.{stage}.") and name.endswith(".bias.table"):
                fitted[name] = fit(table, before, after)
    return fitted
