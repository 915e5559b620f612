"""What is recorded of an attention: a protocol that every kind of attention implements.

Every view reads attention through `AttentionRecord`. So a new kind of attention needs only a record
class of its own, which keeps whatever its map can be computed from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId, active
from manyheads.nn.shapes import Grid, Mask

ALL = slice(None)


@runtime_checkable
class Partition(Protocol):
    """A grid of tokens whose parts, such as windows, are rows of the batch; `str` describes one."""

    @property
    def grid(self) -> Grid:
        """Rows and columns of tokens."""

    @property
    def padding_attended(self) -> bool:
        """Whether tokens attend to padding."""

    def token_index(self) -> Int[Tensor, "part inside"]:
        """For each position in each part, the index of its token; -1 for padding."""

    def regions(self) -> Int[Tensor, "part inside"]:
        """For each position, a number; tokens attend only to those of their part and number."""


@dataclass(frozen=True, slots=True)
class AttentionContext:
    """What a record says about an attention call; nothing of it takes part in the computation."""

    layer_id: LayerId = LayerId()
    query_grid: TokenGrid | None = None
    key_grid: TokenGrid | None = None
    partition: Partition | None = None  # batch rows are parts of examples, not examples
    new_keys: Tensor | None = None  # keys added to a cache: in a search only they are recorded


class ValueRecord(NamedTuple):
    """Values and outputs of an attention, from which the gradient of its map is computed.

    The fused kernel never forms the map A. But its output is O = A V, so dL/dA = dL/dO V^T, and
    dL/dO is what autograd computes for any tensor on the way to a score. That holds without
    dropout, in evaluation.
    """

    v: Float[Tensor, "batch head key value"]
    # With their graph; several where queries came one after another. One head may have no axis.
    outputs: tuple[Float[Tensor, "batch *head query value"], ...]

    def join_gradients(
        self, gradients: Sequence[Float[Tensor, "batch *head query value"]]
    ) -> Float[Tensor, "batch head all_queries value"]:
        """Join the gradients with respect to each of the outputs."""
        joined = torch.cat(tuple(gradients), dim=-2)
        return joined if joined.ndim == 4 else joined[:, None]


def record_values(
    v: Float[Tensor, "batch *head key value"],
    outputs: Sequence[Float[Tensor, "batch *head query value"]],
) -> ValueRecord | None:
    """Keep values and outputs, if the open recorder was opened with `gradients`."""
    trace = active()
    if trace is None or not trace.gradients:
        return None
    v = v.detach()
    return ValueRecord(v if v.ndim == 4 else v[:, None], tuple(outputs))


class ShortRepr:
    """The repr of an attention's record: its layer and the size of its map, without tensors."""

    __slots__ = ()
    layer_id: LayerId

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys of the map."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Fit a line, also where a whole trace is printed."""
        batch, heads, queries, keys = self.shape
        shape = f"batch {batch}, {heads} heads, {queries} x {keys}"
        return f"<{type(self).__name__} {self.layer_id}: {shape}>"


@runtime_checkable
class AttentionRecord(Protocol):
    """One recorded attention: softmax, linear, recurrent, or one from outside the package.

    A row of the batch is an example or, with a `partition`, one part of an example.
    """

    @property
    def layer_id(self) -> LayerId:
        """The module that was recorded; layers that attend to a source have the kind "cross"."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys of the map."""

    @property
    def mask(self) -> Mask | None:
        """True where a query may attend; broadcasts to the shape. None hides nothing."""

    @property
    def query_grid(self) -> TokenGrid | None:
        """Positions of the queries in an image; None for text."""

    @property
    def key_grid(self) -> TokenGrid | None:
        """Positions of the keys in an image; None for text."""

    @property
    def partition(self) -> Partition | None:
        """How the tokens of an example are divided among batch rows; None if they are not."""

    @property
    def values(self) -> ValueRecord | None:
        """Values and outputs, if gradients were asked for."""

    @property
    def decode_step(self) -> DecodeStep | None:
        """The step of a search; None outside a search."""

    def weights(
        self, rows: slice = ALL, queries: slice = ALL
    ) -> Float[Tensor, "row head query key"]:
        """Compute the map of some batch rows and queries in fp32."""


def take(x: Tensor | None, rows: slice, queries: slice) -> Tensor | None:
    """Take batch rows and queries of a tensor that broadcasts to (batch, head, query, key)."""
    if x is None:
        return None
    x = x[(None,) * (4 - x.ndim)]
    x = x[rows] if len(x) > 1 else x
    return x[:, :, queries] if x.shape[2] > 1 else x
