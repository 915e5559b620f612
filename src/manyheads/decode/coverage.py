"""The coverage penalty: outputs that left a part of the source unread get a lower score."""

from dataclasses import dataclass, replace
from typing import Generic

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from manyheads.decode.step import AttentionStep, State, Step
from manyheads.errors import UsageError
from manyheads.nn.shapes import Kept, PerBeam, Scores, Sources, SourceWeights


@dataclass(frozen=True)
class CoverageState(Generic[State]):
    """A decoder's state, and how much attention each source token got from every beam so far."""

    inner: State
    read: SourceWeights
    real: Bool[Tensor, "sentence source"]


class Coverage(Generic[State]):
    """The Step protocol around a model, adding up its attention over the source.

    `bonus` is the coverage penalty cp of Wu et al. 2016, "Google's Neural Machine Translation
    System", equation (14): the sum over source tokens of log(min(attention it got, 1)).
    """

    def __init__(
        self, model: Step[State], real: Bool[Tensor, "sentence source"], penalty: float
    ) -> None:
        """Wrap a model; `real` is True for source tokens that are not padding, `penalty` is beta.

        Raises:
            UsageError: the model's steps return no attention.
        """
        if not isinstance(model, AttentionStep):
            raise _no_attention()
        self.model: AttentionStep[State] = model
        self.real = real
        self.penalty = penalty

    def start(self, source: Sources, beams: int, max_length: int) -> CoverageState[State]:
        """Start with nothing read."""
        count, parts = self.real.shape  # of an image, parts are not pixels
        read = torch.zeros((count, beams, parts), device=source.device)
        return CoverageState(self.model.start(source, beams, max_length), read, self.real)

    def step(
        self, tokens: PerBeam, state: CoverageState[State]
    ) -> tuple[Scores, CoverageState[State]]:
        """Feed one token a beam, and add the attention of this step.

        Raises:
            UsageError: the model has no attention over the source.
        """
        log_probabilities, inner, weights = self.model.step_with_attention(tokens, state.inner)
        if weights is None:
            raise _no_attention()
        return log_probabilities, CoverageState(inner, state.read + weights, state.real)

    def reorder(self, state: CoverageState[State], beams: PerBeam) -> CoverageState[State]:
        """Continue each beam from the beam it grew out of."""
        rows = beams[..., None].expand_as(state.read)
        inner = self.model.reorder(state.inner, beams)
        return replace(state, inner=inner, read=state.read.gather(1, rows))

    def keep(self, state: CoverageState[State], sentences: Kept) -> CoverageState[State]:
        """Drop all sentences but these."""
        inner = self.model.keep(state.inner, sentences)
        return CoverageState(inner, state.read[sentences], state.real[sentences])

    def bonus(self, state: CoverageState[State]) -> Float[Tensor, "sentence beam"]:
        """Compute beta times cp for every beam: 0 when all was read, else negative."""
        least = torch.finfo(state.read.dtype).tiny
        logs = state.read.clamp(least, 1.0).log().masked_fill(~state.real[:, None], 0.0)
        return self.penalty * logs.sum(dim=-1)


def _no_attention() -> UsageError:
    return UsageError(
        "This model has no attention over the source: it offers no alignment and no coverage."
    )
