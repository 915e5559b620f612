"""Recorded attentions, computed a piece at a time: the map of a large input may not fit memory.

Views of many tokens show groups of neighbours: a row is the mean over the queries of a group, a
column the sum over its keys. So rows still sum to 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.cancellation import raise_if_cancelled
from manyheads.errors import UsageError
from manyheads.nn.recording.attention_record import ALL, AttentionRecord, Partition
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId, Trace

PIECE = 1 << 22  # weights that are computed at a time
BUDGET = 6_000_000  # weights in a view: a ViT-B/16 at 224 pixels has 5.6 million


class Piece(NamedTuple):
    """Weights, and the tokens of their rows and columns."""

    queries: Int[Tensor, " query"]
    keys: Int[Tensor, " key"]
    weights: Float[Tensor, "head query key"]


class Cut(NamedTuple):
    """The tokens of a piece of a map, and their positions in the record."""

    queries: Int[Tensor, " query"]
    keys: Int[Tensor, " key"]
    row: int  # of the batch: an example, or one of its windows
    rows: Int[Tensor, " query"]  # positions of the queries in that batch row
    columns: Int[Tensor, " key"]  # positions of the keys in it


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Tokens that are shown as one: `index` is the group of each."""

    index: Int[Tensor, " token"]
    count: int

    @classmethod
    def of(cls, tokens: int, size: int = 1) -> "Groups":
        """Group this many tokens in a row."""
        return cls(torch.arange(tokens) // size, -(-tokens // size))


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """The recorded attention of one example."""

    record: AttentionRecord
    example: int = 0

    @property
    def layer_id(self) -> LayerId:
        """The module that was recorded."""
        return self.record.layer_id

    @property
    def partition(self) -> Partition | None:
        """How tokens are divided into windows; None if all attend to all."""
        return self.record.partition

    @property
    def query_grid(self) -> TokenGrid | None:
        """Positions of the queries in an image."""
        return self.record.query_grid

    @property
    def key_grid(self) -> TokenGrid | None:
        """Positions of the keys in an image."""
        return self.record.key_grid

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.record.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of queries and keys of the whole map."""
        if self.partition is not None:
            tokens = self.partition.grid[0] * self.partition.grid[1]
            return tokens, tokens
        return self.record.shape[2:]

    @property
    def square(self) -> bool:
        """Whether queries and keys are the same tokens."""
        return self.shape[0] == self.shape[1] and self.query_grid == self.key_grid

    @property
    def causal(self) -> bool:
        """Whether the mask hides from each token those after it."""
        mask = self.record.mask
        if mask is None or mask.ndim < 2 or mask.shape[-1] != mask.shape[-2] != 1:
            return False
        return self.square and not bool(mask.triu(diagonal=1).any())

    def pieces(self) -> Iterator[Piece]:
        """Compute the map, a window or a few queries at a time."""
        for cut in self.cuts():
            yield Piece(cut.queries, cut.keys, self.part(cut))

    def part(self, cut: Cut) -> Float[Tensor, "head query key"]:
        """Compute a piece of the map: a step, between which work can be cancelled."""
        raise_if_cancelled()
        row = slice(cut.row, cut.row + 1)
        if self.partition is None:
            queries = slice(int(cut.rows[0]), int(cut.rows[-1]) + 1)
            return self.record.weights(row, queries)[0].cpu()
        return self.record.weights(row, ALL)[0].cpu()[:, cut.rows][:, :, cut.columns]

    def cuts(self) -> Iterator[Cut]:
        """Cut the map into windows, or into a few queries each."""
        queries, keys = self.shape
        if self.partition is not None:
            index = self.partition.token_index()
            for row, tokens in enumerate(index, self.example * len(index)):
                (inside,) = torch.where(tokens >= 0)  # the others are padding
                yield Cut(tokens[inside], tokens[inside], row, inside, inside)
            return
        step = max(PIECE // max(self.heads * keys, 1), 1)
        every = torch.arange(keys)
        for first in range(0, queries, step):
            some = torch.arange(first, min(first + step, queries))
            yield Cut(some, every, self.example, some, every)

    def whole(self) -> Float[Tensor, "head query key"]:
        """Compute the whole map; zeros between windows."""
        whole = torch.zeros(self.heads, *self.shape)
        for piece in self.pieces():
            whole[:, piece.queries[:, None], piece.keys] = piece.weights
        return whole

    def merged(self, rows: Groups, columns: Groups) -> Float[Tensor, "head row column"]:
        """Compute the map over groups of tokens."""
        whole = torch.zeros(self.heads, rows.count, columns.count)
        for piece in self.pieces():
            part = torch.zeros(self.heads, len(piece.queries), columns.count)
            part.index_add_(2, columns.index[piece.keys], piece.weights)
            whole.index_add_(1, rows.index[piece.queries], part)
        return whole / torch.bincount(rows.index, minlength=rows.count)[:, None]

    def read_by(self, share: Float[Tensor, " query"]) -> Float[Tensor, " key"]:
        """Sum the attention that each key gets, weighted by these shares; mean over heads."""
        total = torch.zeros(self.shape[1])
        for piece in self.pieces():
            total.index_add_(0, piece.keys, share[piece.queries] @ piece.weights.mean(dim=0))
        return total


def examples(record: AttentionRecord) -> int:
    """The number of examples in the batch of a record."""
    parts = 1 if record.partition is None else len(record.partition.token_index())
    return record.shape[0] // parts


def attentions(trace: Trace) -> list[Attention]:
    """List the recorded attentions, in the order in which they ran.

    Raises:
        UsageError: the trace holds several examples, or several passes through one attention, or
            the recorder was full.
    """
    by_layer: dict[LayerId, Attention] = {}
    for record in trace.complete():
        if not isinstance(record, AttentionRecord):
            continue
        if (count := examples(record)) != 1:
            raise UsageError(
                f"The trace holds {count} examples at {record.layer_id}: record one at a time."
            )
        if record.layer_id in by_layer:
            raise UsageError(
                f"The trace holds several passes through {record.layer_id}: record one forward "
                "pass, or take one output out of a recorded search with "
                "lens.trace.decoding_trace.decoded()."
            )
        by_layer[record.layer_id] = Attention(record)
    return list(by_layer.values())


def side_limit(attentions: Sequence[Attention], budget: int = BUDGET) -> int:
    """Compute how many tokens a side may have so that all maps together have `budget` weights."""

    def weights(side: int) -> int:
        return sum(
            each.heads * min(each.shape[0], side) * min(each.shape[1], side) for each in attentions
        )

    low, high = 1, max((max(each.shape) for each in attentions), default=1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if weights(middle) <= budget else (low, middle - 1)
    return low
