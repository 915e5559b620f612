"""Recorded attentions, read a piece at a time: the whole map of a large input may not fit memory.

What is shown of many tokens are groups of neighbours: a row is the mean over the queries of a
group, a column the sum over its keys. So rows still sum to 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeGuard

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.alignment import ScoreRecord
from manyheads.nn.attention import AttentionRecord
from manyheads.nn.linear_attention import ImpliedRecord
from manyheads.nn.places import Places
from manyheads.nn.trace import Record, Site, Trace
from manyheads.nn.windows import Windows

Recorded = AttentionRecord | ScoreRecord | ImpliedRecord
PIECE = 1 << 22  # weights that are computed at a time
BUDGET = 6_000_000  # weights in a view: a ViT-B/16 at 224 pixels has 5.6 million


class Piece(NamedTuple):
    """Weights, and which tokens their rows and columns are."""

    queries: Int[Tensor, " query"]
    keys: Int[Tensor, " key"]
    weights: Float[Tensor, "head query key"]


class Cut(NamedTuple):
    """Which tokens a piece of a map compares, and where the record has them."""

    queries: Int[Tensor, " query"]
    keys: Int[Tensor, " key"]
    row: int  # of the batch: an example, or one of its windows
    rows: Int[Tensor, " query"]  # the places of the queries in that row
    columns: Int[Tensor, " key"]  # and of the keys


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Which tokens are shown as one: `index` says the group of each."""

    index: Int[Tensor, " token"]
    count: int

    @classmethod
    def of(cls, tokens: int, size: int = 1) -> "Groups":
        """Put so many tokens in a row into a group."""
        return cls(torch.arange(tokens) // size, -(-tokens // size))


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """One recorded attention of one example."""

    record: Recorded

    @property
    def site(self) -> Site:
        """Where in the model it is."""
        return self.record.site

    @property
    def implied(self) -> bool:
        """Whether the map was never formed: that of linear attention."""
        return isinstance(self.record, ImpliedRecord)

    @property
    def windows(self) -> Windows | None:
        """How tokens are cut into windows; None if all attend to all."""
        return self.record.windows if isinstance(self.record, AttentionRecord) else None

    @property
    def places(self) -> Places | None:
        """Where the tokens stand in a picture."""
        return None if isinstance(self.record, ScoreRecord) else self.record.tokens

    @property
    def key_places(self) -> Places | None:
        """Where the keys stand: with the tokens, unless they are other ones."""
        return None if isinstance(self.record, ScoreRecord) else self.record.keys or self.places

    @property
    def heads(self) -> int:
        """Count the heads."""
        return _queries(self.record).shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Count queries and keys of the whole map."""
        if self.windows is not None:
            tokens = self.windows.grid[0] * self.windows.grid[1]
            return tokens, tokens
        if isinstance(self.record, ScoreRecord):
            return self.record.scores.shape[2], self.record.scores.shape[3]
        return self.record.q.shape[2], self.record.k.shape[2]

    @property
    def square(self) -> bool:
        """Whether queries and keys are the same tokens."""
        return self.shape[0] == self.shape[1] and self.places == self.key_places

    @property
    def causal(self) -> bool:
        """Whether the mask hides from each token what comes after it."""
        mask = self.record.mask
        if mask is None or mask.ndim < 2 or mask.shape[-1] != mask.shape[-2] != 1:
            return False
        return self.square and not bool(mask.triu(diagonal=1).any())

    def pieces(self) -> Iterator[Piece]:
        """Compute the map, a window or a few queries at a time."""
        for cut in self.cuts():
            yield Piece(cut.queries, cut.keys, self.part(cut))

    def part(self, cut: Cut) -> Float[Tensor, "head query key"]:
        """Compute a piece of the map."""
        if self.windows is None:
            return _part(self.record, cut.row, slice(int(cut.rows[0]), int(cut.rows[-1]) + 1))
        return _part(self.record, cut.row, slice(None))[:, cut.rows][:, :, cut.columns]

    def cuts(self) -> Iterator[Cut]:
        """Cut the map into windows, or into a few queries each."""
        queries, keys = self.shape
        if self.windows is not None:
            for window, places in enumerate(self.windows.places()):
                (inside,) = torch.where(places >= 0)  # the others are padding
                tokens = places[inside]
                yield Cut(tokens, tokens, window, inside, inside)
            return
        step = max(PIECE // max(self.heads * keys, 1), 1)
        every = torch.arange(keys)
        for first in range(0, queries, step):
            some = torch.arange(first, min(first + step, queries))
            yield Cut(some, every, 0, some, every)

    def merged(self, rows: Groups, columns: Groups) -> Float[Tensor, "head row column"]:
        """Compute the map over groups of tokens."""
        whole = torch.zeros(self.heads, rows.count, columns.count)
        for piece in self.pieces():
            part = torch.zeros(self.heads, len(piece.queries), columns.count)
            part.index_add_(2, columns.index[piece.keys], piece.weights)
            whole.index_add_(1, rows.index[piece.queries], part)
        return whole / torch.bincount(rows.index, minlength=rows.count)[:, None]

    def read_by(self, share: Float[Tensor, " query"]) -> Float[Tensor, " key"]:
        """Say what is read of each key if each query is asked with this share; mean over heads."""
        found = torch.zeros(self.shape[1])
        for piece in self.pieces():
            found.index_add_(0, piece.keys, share[piece.queries] @ piece.weights.mean(dim=0))
        return found


def is_attention(record: Record) -> TypeGuard[Recorded]:
    """Tell attentions from whatever else a recorder keeps."""
    return isinstance(record, AttentionRecord | ScoreRecord | ImpliedRecord)


def attentions(trace: Trace) -> list[Attention]:
    """List the recorded attentions, in the order in which they ran.

    Raises:
        UsageError: the trace holds several examples, or several passes through one attention, or
            the recorder was full.
    """
    found: dict[Site, Attention] = {}
    for record in trace.complete():
        if not is_attention(record):
            continue
        attention = Attention(record)
        tiles = (1, 1) if attention.windows is None else attention.windows.tiles
        examples = len(_queries(record)) // (tiles[0] * tiles[1])
        if examples != 1:
            raise UsageError(
                f"The trace holds {examples} examples at {record.site}: record one at a time."
            )
        if record.site in found:
            raise UsageError(
                f"The trace holds several passes through {record.site}: record one forward pass, "
                "or take one output out of a recorded search with lens.decoding.decoded."
            )
        found[record.site] = attention
    return list(found.values())


def side_limit(found: Sequence[Attention], budget: int = BUDGET) -> int:
    """Say how many tokens a side may have so that all maps together have `budget` weights."""

    def weights(side: int) -> int:
        return sum(
            each.heads * min(each.shape[0], side) * min(each.shape[1], side) for each in found
        )

    low, high = 1, max((max(each.shape) for each in found), default=1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if weights(middle) <= budget else (low, middle - 1)
    return low


def _queries(record: Recorded) -> Tensor:
    return record.scores if isinstance(record, ScoreRecord) else record.q


def _part(record: Recorded, row: int, queries: slice) -> Float[Tensor, "head query key"]:
    """Compute the map of one row of the batch and some queries."""
    if isinstance(record, ScoreRecord):
        scores = record.scores[row : row + 1, :, queries]
        return replace(record, scores=scores, mask=_cut(record.mask, row, queries)).weights[0].cpu()
    fewer = replace(
        record,
        q=record.q[row : row + 1, :, queries],
        k=record.k[row : row + 1],
        mask=_cut(record.mask, row, queries),
    )
    if isinstance(fewer, AttentionRecord):
        fewer = replace(fewer, bias=_cut(fewer.bias, row, queries), windows=None)
    return fewer.weights[0].cpu()


def _cut(x: Tensor | None, row: int, queries: slice) -> Tensor | None:
    """Take the same part of what broadcasts to (batch, head, query, key)."""
    if x is None:
        return None
    x = x[(None,) * (4 - x.ndim)]
    x = x[row : row + 1] if len(x) > 1 else x
    return x[:, :, queries] if x.shape[2] > 1 else x
