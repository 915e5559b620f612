"""Gradients of a score with respect to the tensors that a recorder of gradients has kept.

A score is a number that is computed from a model's output, such as the logit of a class; the caller
chooses it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.trace.attention_reader import Attention, Piece, attentions
from manyheads.nn.recording.attention_record import AttentionRecord, ValueRecord
from manyheads.nn.recording.trace import Trace


def gradients(score: Float[Tensor, ""], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Compute dL/dx for each x on the way to a score; zeros for what has no part in it.

    The graph stays, for other scores of the same pass.

    Raises:
        UsageError: the score has no graph.
    """
    if not score.requires_grad:
        raise UsageError(
            "The score has no gradient: run the model with gradients on (not in inference_mode or "
            "no_grad), and with parameters or an input that require them."
        )
    computed = torch.autograd.grad(score, tensors, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(computed, tensors, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class GradientWeightedAttention:
    """One recorded attention, each weight times the gradient of a score with respect to it.

    That is the positive part of dL/dA * A, the mean over heads (Chefer et al. 2021, "Generic
    Attention-model Explainability", equation 5). dL/dA is dL/dO V^T, computed a piece at a time.
    """

    attention: Attention
    v: Float[Tensor, "row head key value"]
    gradient: Float[Tensor, "row head query value"]  # dL/dO

    def pieces(self) -> Iterator[Piece]:
        """Compute it a window or a few queries at a time; a piece has one head, the mean."""
        device = self.gradient.device
        for cut in self.attention.cuts():
            gradient = self.gradient[cut.row][:, cut.rows.to(device)].float()
            v = self.v[cut.row][:, cut.columns.to(device)].float()
            weights = (gradient @ v.mT).cpu() * self.attention.part(cut)
            yield Piece(cut.queries, cut.keys, weights.clamp_min(0).mean(dim=0, keepdim=True))

    def whole(self) -> Float[Tensor, "query key"]:
        """Compute all of it; for texts, whose maps are small."""
        total = torch.zeros(self.attention.shape)
        for piece in self.pieces():
            total[piece.queries[:, None], piece.keys] = piece.weights[0]
        return total

    def from_queries(self, x: Float[Tensor, " query"]) -> Float[Tensor, " key"]:
        """Multiply it with a row from the left."""
        total = torch.zeros(self.attention.shape[1])
        for piece in self.pieces():
            total.index_add_(0, piece.keys, x[piece.queries] @ piece.weights[0])
        return total

    def from_keys(self, x: Float[Tensor, " key"]) -> Float[Tensor, " query"]:
        """Multiply it with a column from the right."""
        total = torch.zeros(self.attention.shape[0])
        for piece in self.pieces():
            total.index_add_(0, piece.queries, piece.weights[0] @ x[piece.keys])
        return total


def weighed(trace: Trace, score: Float[Tensor, ""]) -> list[GradientWeightedAttention]:
    """Weigh every recorded attention by a score, in the order in which they ran.

    Raises:
        UsageError: the trace was recorded without gradients, or holds several examples or passes.
    """
    recorded = attentions(trace)
    values = [_values(each.record) for each in recorded]
    outputs = [output for each in values for output in each.outputs]
    computed = iter(gradients(score, outputs) if outputs else [])
    return [
        GradientWeightedAttention(
            attention, each.v, each.join_gradients([next(computed).detach() for _ in each.outputs])
        )
        for attention, each in zip(recorded, values, strict=True)
    ]


def _values(record: AttentionRecord) -> ValueRecord:
    if record.values is None:
        raise UsageError(
            f"The trace of {record.layer_id} was recorded without gradients: use "
            "record(gradients=True)."
        )
    return record.values
