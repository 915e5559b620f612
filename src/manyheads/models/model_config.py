"""The protocol of a model's Config: a frozen dataclass that builds its model.

A model from outside the package joins with a Config of its own: the simplest way is to inherit
`ModelConfig`, set `tasks` and define `build`; the other members have defaults.
"""

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

from torch import nn

from manyheads.errors import UsageError
from manyheads.models.exported_graphs import Graph, images_input
from manyheads.models.sized_tables import SizedTable

M_co = TypeVar("M_co", bound=nn.Module, covariant=True)


@runtime_checkable
class Builds(Protocol[M_co]):
    """A Config seen only as the builder of one class of model."""

    def build(self) -> M_co:
        """Build the model."""
        ...


@runtime_checkable
class ModelConfig(Protocol):
    """A model's shape and parts, as a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    tasks: ClassVar[tuple[str, ...]]
    """Names of the tasks that the model can be trained for, as in a recipe's `task`."""

    starts_from: ClassVar[tuple[str, ...]] = ()
    """Tasks whose trained models can initialise parts of this one (a recipe's [start] table)."""

    exports: ClassVar[tuple[str, ...]] = ()
    """Formats of other libraries that the model can be written in; a subclass names its own."""

    def __init_subclass__(cls) -> None:
        """Inherit no formats: what a subclass changes has no place in them."""
        super().__init_subclass__()
        cls.exports = vars(cls).get("exports", ())

    @abstractmethod
    def build(self) -> nn.Module:
        """Build the model with fresh weights from torch's generator."""
        ...

    @property
    def token_limit(self) -> int:
        """Maximum number of tokens per text: sys.maxsize unless positions are learned."""
        return sys.maxsize

    def with_positions(self, most: int) -> "ModelConfig":
        """Return the Config with tables for so many tokens, where positions are a formula.

        Where they are learned, or there is room already, it is the Config itself.
        """
        own: Any = self
        if self.token_limit < sys.maxsize or getattr(own, "max_length", sys.maxsize) >= most:
            return self
        return cast(ModelConfig, replace(own, max_length=most))

    @property
    def sized_tables(self) -> Mapping[str, SizedTable]:
        """Tensors whose shape depends on the image size, by fnmatch pattern of their names."""
        return {}

    def graphs(self, model: Any) -> Sequence[Graph]:
        """Say as which graphs the model is run outside of torch; empty: it cannot be.

        Args:
            model: what `build` returned, ready for use.
        """
        return ()

    def variant(self, suffix: str) -> "ModelConfig | None":
        """Return the Config that "preset/suffix" names; None if there is no such variant."""
        return None


@dataclass(frozen=True, kw_only=True)
class ImageConfig(ModelConfig):
    """Fields of every image classifier; the size is the one that it is meant for."""

    tasks: ClassVar[tuple[str, ...]] = ("classify",)
    # Modules of the model that its `features` do not need.
    behind_features: ClassVar[tuple[str, ...]] = ("head",)
    _width_key: ClassVar[str] = ""  # the field with the width of the features, or of each stage

    height: int = 224
    width: int = 224
    channels: int = 3
    classes: int = 1000  # of a ViT also 0: no head

    @property
    def feature_dim(self) -> int:
        """Width of the vectors that the model's `features` gives for parts of an image; 0: none."""
        width = getattr(self, self._width_key, 0)
        return int(width if isinstance(width, int) else width[-1])

    def graphs(self, model: Any) -> Sequence[Graph]:
        """One graph, from images to logits."""
        images = images_input(self.channels, self.height, self.width)
        return (Graph("model", model, (images,), ("logits",)),)


def check_stages(config: ModelConfig, keys: Sequence[str]) -> None:
    """Refuse stages that are not described by equally many numbers under each of these keys.

    Raises:
        UsageError: the counts differ, or there is no stage.
    """
    counts = [len(getattr(config, key)) for key in keys]
    if len(set(counts)) != 1 or not counts[0]:
        told = [f"{key} {count}" for key, count in zip(keys, counts, strict=True)]
        raise UsageError(
            f"{keys[0]} has {counts[0]} numbers, {', '.join(told[1:])}: give each one number a "
            "stage."
        )


REQUIRED = ("build", "exports", "sized_tables", "starts_from", "tasks", "token_limit", "variant")


def lacking(config: object) -> list[str]:
    """List what an object lacks to be a model's Config: empty if it is one."""
    lacks = [name for name in REQUIRED if not hasattr(config, name)]
    params = getattr(config, "__dataclass_params__", None)
    if params is None or not params.frozen or isinstance(config, type):
        lacks.insert(0, "being an instance of a frozen dataclass")
    if isinstance(getattr(config, "tasks", None), str):
        lacks.append("a tuple of names as tasks")
    return lacks
