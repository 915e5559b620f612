"""The graphs that a model is run as outside of torch: what goes in, what comes out, what is open.

A classifier is one graph. What writes text is two, as in its own decoding: an encoder, which also
projects the keys and values of the source, and a step of the decoder with an explicit cache. A
causal language model is one, with such a cache. The two towers of a matcher are two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from manyheads.nn.layers.cache import KeyValueCache

T = TypeVar("T")
ROWS, TOKENS = 2, 5  # of examples; any numbers that are not 0 or 1, which tracing would keep


class GraphInput(NamedTuple):
    """An input of a graph: an example, and the names of its open axes.

    Axes of one name are equally long in a call.
    """

    name: str
    example: Tensor
    axes: Mapping[int, str]


@dataclass(frozen=True)
class Graph:
    """A module to trace."""

    name: str
    module: nn.Module
    inputs: Sequence[GraphInput]
    outputs: Sequence[str]
    limits: Mapping[str, int] = field(default_factory=dict)  # of open axes: the most
    empty: tuple[str, ...] = ()  # open axes that may have length 0
    listed: int | None = None  # the module takes the inputs from here on as one list

    def arguments(self, given: Sequence[T]) -> tuple[T | list[T], ...]:
        """Arrange what belongs to each input as the module's arguments."""
        if self.listed is None:
            return tuple(given)
        return (*given[: self.listed], [*given[self.listed :]])


class GraphCache(KeyValueCache):
    """A cache that grows by copying, because a graph writes nothing in place."""

    def append(self, k: Tensor, v: Tensor) -> "GraphCache":
        """Put new keys and values behind the old ones."""
        keys = torch.cat((self.key_storage, k), dim=2)
        values = torch.cat((self.value_storage, v), dim=2)
        return GraphCache(keys, values, keys.shape[2])

    @classmethod
    def of_beams(cls, keys: Tensor, values: Tensor) -> "GraphCache":
        """Read keys and values (sentence, beam, head, token, size)."""
        return cls(keys.flatten(0, 1), values.flatten(0, 1), keys.shape[3])


def images_input(channels: int, height: int, width: int, *, rows: str = "images") -> GraphInput:
    """Normalised images of one size."""
    return GraphInput("images", torch.zeros(ROWS, channels, height, width), {0: rows})


def tokens_input(*, name: str = "tokens", rows: str = "texts") -> GraphInput:
    """Ids of texts, padded."""
    return GraphInput(name, torch.full((ROWS, TOKENS), 3), {0: rows, 1: name})


def layer_inputs(
    layers: int, prefix: str, shape: tuple[int, ...], axes: Mapping[int, str]
) -> list[GraphInput]:
    """Keys and values, layer by layer, of this shape."""
    # Each a tensor of its own: one tensor twice would be traced as one input.
    names = layer_names(layers, prefix=prefix)
    return [GraphInput(name, torch.zeros(shape), axes) for name in names]


def layer_names(layers: int, *, prefix: str = "") -> list[str]:
    """Name keys and values, layer by layer."""
    return [f"{prefix}{what}_{layer}" for layer in range(layers) for what in ("keys", "values")]


def pairs(flat: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Put the keys and values of each layer together."""
    return list(zip(flat[::2], flat[1::2], strict=True))
