"""Attention of a recurrent decoder over the encoder's states (atlas T4).

The query is the decoder's state, the keys and values are the encoder's. The scores are computed
here; the softmax and its mask are those of `attention.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.nn.attention.softmax import normalise
from manyheads.nn.editing.seam import HEAD, edited_pattern, is_open, visit
from manyheads.nn.layers.linear import Linear
from manyheads.nn.recording.attention_record import (
    ALL,
    AttentionContext,
    Partition,
    ShortRepr,
    ValueRecord,
    record_values,
    take,
)
from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId, active, refuse_compiled
from manyheads.nn.recording.tracking import grid_of
from manyheads.nn.shapes import Kept, Mask

Keys = Float[Tensor, "batch key size"]
Queries = Float[Tensor, "batch query size"]
HeadScores = Float[Tensor, "batch 1 query key"]  # the 1 is the head axis that other attentions have


@dataclass(frozen=True, slots=True, repr=False)
class ScoreRecord(ShortRepr):
    """The scores of one attention, where they are not QK^T."""

    layer_id: LayerId
    scores: Float[Tensor, "batch head query key"]
    mask: Mask | None = None
    query_grid: TokenGrid | None = None
    key_grid: TokenGrid | None = None
    partition: Partition | None = None
    decode_step: DecodeStep | None = None
    values: ValueRecord | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        batch, heads, queries, keys = self.scores.shape
        return batch, heads, queries, keys

    def weights(
        self, rows: slice = ALL, queries: slice = ALL
    ) -> Float[Tensor, "row head query key"]:
        """Compute the map of some batch rows and queries in fp32."""
        return normalise(self.scores[rows, :, queries].float(), take(self.mask, rows, queries))


def record_scores(
    scores: Float[Tensor, "batch head query key"],
    mask: Mask | None = None,
    *,
    context: AttentionContext,
    values: ValueRecord | None = None,
) -> None:
    """Record scores of any origin, and what their weights mixed, if a recorder is open.

    Raises:
        UsageError: a recorder is open while torch.compile traces the model.
    """
    trace = active()
    if trace is not None:
        if torch.compiler.is_compiling():
            refuse_compiled()
        where = (context.query_grid, context.key_grid, context.partition, trace.decode_step)
        trace.add(ScoreRecord(context.layer_id, scores.detach(), mask, *where, values))


class AdditiveScore(nn.Module):
    """e_ij = v . tanh(W s_i + U h_j) (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.w = Linear(size, size, bias=False)
        self.u = Linear(size, size, bias=False)
        self.v = Linear(size, 1, bias=False)

    def project(self, memory: Keys) -> Keys:
        """U h_j does not depend on the query: computed once a source."""
        return self.u(memory)

    def forward(self, query: Queries, keys: Keys) -> Float[Tensor, "batch query key"]:
        """Compare every query with every key."""
        return self.v((self.w(query)[:, :, None] + keys[:, None]).tanh())[..., 0]


class DotScore(nn.Module):
    """s_i . h_j (Luong et al. 2015, 3.1)."""

    def __init__(self, size: int) -> None:
        super().__init__()

    def project(self, memory: Keys) -> Keys:
        """Take the states as they are."""
        return memory

    def forward(self, query: Queries, keys: Keys) -> Float[Tensor, "batch query key"]:
        """Compare every query with every key."""
        return query @ keys.transpose(1, 2)


class GeneralScore(DotScore):
    """s_i . W h_j (Luong et al. 2015, 3.1)."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.w = Linear(size, size, bias=False)

    def project(self, memory: Keys) -> Keys:
        """W h_j does not depend on the query: computed once a source."""
        return self.w(memory)


class Source(NamedTuple):
    """A source as the decoder reads it."""

    keys: Keys
    values: Keys
    mask: Bool[Tensor, "batch 1 1 key"]
    grid: TokenGrid | None = None  # positions of the keys in an image, for a recorder

    def select(self, sentences: Kept) -> "Source":
        """Keep these sentences."""
        keys, values, mask = (each[sentences] for each in (self.keys, self.values, self.mask))
        return Source(keys, values, mask, self.grid)


class GlobalAttention(nn.Module):
    """a_t = tanh(W [c_t; s_t]): a state joined with its context (Luong et al. 2015, equation 5).

    c_t is the mean of the encoder's states, weighted by softmax(score(s_t, h_j)).
    """

    def __init__(self, score: AdditiveScore | DotScore, size: int, out: int) -> None:
        super().__init__()
        self.score = score
        self.combine = Linear(2 * size, out)
        self.layer_id = LayerId("decoder", 0, "cross")  # set by the model, for recording

    def project(self, memory: Keys, mask: Bool[Tensor, "batch 1 1 key"]) -> Source:
        """Prepare a source, once for all queries and steps."""
        return Source(self.score.project(memory), memory, mask, grid_of(memory))

    def scores(self, query: Queries, source: Source) -> HeadScores:
        """Compare states with the source; the 1 is the head axis that other attentions have."""
        return self.score(query, source.keys)[:, None]

    def weights(self, scores: HeadScores, source: Source) -> HeadScores:
        """Normalise the scores over the source."""
        weights = normalise(scores, source.mask)
        edited = edited_pattern(self.layer_id, lambda: weights) if is_open() else None
        return weights if edited is None else edited

    def mix(
        self, weights: Float[Tensor, "batch 1 query key"], source: Source
    ) -> Float[Tensor, "batch query value"]:
        """Compute the contexts."""
        if not is_open():
            return weights[:, 0] @ source.values
        v = visit(self.layer_id, f"{self.layer_id.kind} v", source.values[:, None], keys=True)
        out = weights[:, 0] @ v[:, 0]
        return visit(self.layer_id, f"{self.layer_id.kind} {HEAD}", out[:, None])[:, 0]

    def record(
        self,
        scores: HeadScores,
        contexts: Sequence[Float[Tensor, "batch some_queries value"]],
        source: Source,
    ) -> None:
        """Record scores and the contexts computed from them, if a recorder is open."""
        context = AttentionContext(self.layer_id, key_grid=source.grid)
        values = record_values(source.values, contexts)
        record_scores(scores, source.mask, context=context, values=values)

    def join(
        self, context: Float[Tensor, "batch query value"], query: Queries
    ) -> Float[Tensor, "batch query out"]:
        """Join contexts and states."""
        return self.combine(torch.cat((context, query), dim=-1)).tanh()

    def forward(
        self, query: Queries, source: Source
    ) -> tuple[Float[Tensor, "batch query out"], Float[Tensor, "batch query key"]]:
        """Attend to a source from the states of a whole target, or of all beams at one step.

        Returns:
            The attentional vectors, and the attention weights.
        """
        scores = self.scores(query, source)
        weights = self.weights(scores, source)
        context = self.mix(weights, source)
        self.record(scores, [context], source)
        return self.join(context, query), weights[:, 0]


class NoAttention(nn.Module):
    """a_t = tanh(W s_t): the state alone must carry all of the source (atlas T3)."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.combine = Linear(size, out)

    def project(self, memory: Keys, mask: Bool[Tensor, "batch 1 1 key"]) -> Source:
        """Keep of a source only its number of sentences."""
        return Source(memory[:, :0], memory[:, :0], mask[..., :0])

    def forward(
        self, query: Queries, source: Source
    ) -> tuple[Float[Tensor, "batch query out"], None]:
        """Transform the states; there are no weights."""
        return self.combine(query).tanh(), None


ScoreName = Literal["none", "additive", "dot", "general"]
SCORES: dict[ScoreName, type[AdditiveScore] | type[DotScore]] = {
    "additive": AdditiveScore,
    "dot": DotScore,
    "general": GeneralScore,
}
