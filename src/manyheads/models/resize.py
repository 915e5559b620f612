"""Load a trained model for another image size: its position and bias tables are interpolated."""

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from torch import Tensor

from manyheads.models.model_config import ModelConfig
from manyheads.models.sized_tables import Size

State = dict[str, Tensor]
Tensors = Mapping[str, Tensor]
C = TypeVar("C", bound=ModelConfig)


def resize(config: C, state: Tensors, size: Size, library: str | None = None) -> tuple[C, State]:
    """Fit an image model to another image size, not necessarily square.

    `size` is height and width in pixels, `library` whose way of interpolating to take, if weights
    come from there. The given state is not changed.

    Raises:
        UsageError: a ViT cannot cut such an image into whole patches.
    """
    resized = at_size(config, size)
    return resized, refit(config, resized, state, library)


def reads_images(config: ModelConfig) -> bool:
    """Tell whether a model reads images of a size: itself, or with an image encoder inside."""
    return hasattr(config, "height") or hasattr(getattr(config, "image", None), "height")


def at_size(config: C, size: Size) -> C:
    """Return the Config for images of another size: height and width."""
    changes: Any = {"height": size[0], "width": size[1]}
    inner: Any = getattr(config, "image", None)
    if hasattr(inner, "height"):
        changes = {"image": replace(inner, **changes)}
    return replace(config, **changes)


def refit(old: ModelConfig, new: ModelConfig, state: Tensors, library: str | None) -> State:
    """Fit the tables that both Configs list in `sized_tables`; keep all other tensors."""
    wanted = new.sized_tables
    fitted = dict(state)
    for pattern, table in old.sized_tables.items():
        for name in state if pattern in wanted else ():
            if fnmatchcase(name, pattern):
                fitted[name] = table.fit(state[name], table.grid, wanted[pattern].grid, library)
    return fitted
