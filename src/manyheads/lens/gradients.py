"""Gradients of a score with respect to what a recorder of gradients has kept.

A score is a number that a model's answer gives for one thing, such as the logit of a class; who
wants an explanation chooses it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.reading import Attention, Piece, Recorded, attentions
from manyheads.nn.flow import Flow
from manyheads.nn.places import Places
from manyheads.nn.trace import Site, Trace


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
    found = torch.autograd.grad(score, tensors, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, tensors, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """One recorded attention, each weight times how much a score asks for it.

    That is the positive part of dL/dA * A, the mean over heads (Chefer et al. 2021, "Generic
    Attention-model Explainability", equation 5). dL/dA is dL/dO V^T, computed a piece at a time.
    """

    attention: Attention
    flow: Flow
    gradient: Float[Tensor, "row head query value"]  # dL/dO

    @property
    def site(self) -> Site:
        """Where in the model it is."""
        return self.attention.site

    @property
    def places(self) -> Places | None:
        """Where the tokens stand in a picture."""
        return self.attention.places

    def pieces(self) -> Iterator[Piece]:
        """Compute it a window or a few queries at a time; a piece has one head, the mean."""
        device = self.gradient.device
        for cut in self.attention.cuts():
            asked = self.gradient[cut.row][:, cut.rows.to(device)].float()
            values = self.flow.values[cut.row][:, cut.columns.to(device)].float()
            weights = (asked @ values.mT).cpu() * self.attention.part(cut)
            yield Piece(cut.queries, cut.keys, weights.clamp_min(0).mean(dim=0, keepdim=True))

    def whole(self) -> Float[Tensor, "query key"]:
        """Compute all of it; for texts, whose maps are small."""
        found = torch.zeros(self.attention.shape)
        for piece in self.pieces():
            found[piece.queries[:, None], piece.keys] = piece.weights[0]
        return found

    def from_queries(self, x: Float[Tensor, " query"]) -> Float[Tensor, " key"]:
        """Multiply it with a row from the left."""
        found = torch.zeros(self.attention.shape[1])
        for piece in self.pieces():
            found.index_add_(0, piece.keys, x[piece.queries] @ piece.weights[0])
        return found

    def from_keys(self, x: Float[Tensor, " key"]) -> Float[Tensor, " query"]:
        """Multiply it with a column from the right."""
        found = torch.zeros(self.attention.shape[0])
        for piece in self.pieces():
            found.index_add_(0, piece.queries, piece.weights[0] @ x[piece.keys])
        return found

    def asked(self) -> Float[Tensor, " query"]:
        """Say with 1 on which queries' answers the score depends at all."""
        found = torch.zeros(self.attention.shape[0])
        told = self.gradient.abs().amax(dim=(1, 3)).cpu() > 0  # row query
        for cut in self.attention.cuts():
            found[cut.queries] = told[cut.row, cut.rows].float()
        return found


def weighed(trace: Trace, score: Float[Tensor, ""]) -> list[Weighed]:
    """Weigh every recorded attention by a score, in the order in which they ran.

    Raises:
        UsageError: the trace was recorded without gradients, or holds several examples or passes.
    """
    found = attentions(trace)
    flows = [_flow(each.record) for each in found]
    outputs = [output for flow in flows for output in flow.outputs]
    computed = iter(gradients(score, outputs) if outputs else [])
    return [
        Weighed(each, flow, flow.of_outputs([next(computed).detach() for _ in flow.outputs]))
        for each, flow in zip(found, flows, strict=True)
    ]


def _flow(record: Recorded) -> Flow:
    if record.flow is None:
        raise UsageError(
            f"The trace of {record.site} was recorded without gradients: use "
            "record(gradients=True)."
        )
    return record.flow
