"""Coverage: outputs that left a part of the source unread rank lower."""

from dataclasses import dataclass, replace
from typing import Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.decode.step import State, Step
from manyheads.errors import UsageError
from manyheads.nn.alignment import ScoreRecord
from manyheads.nn.attention import AttentionRecord
from manyheads.nn.trace import Trace, overhear


def read_from_source(trace: Trace) -> Float[Tensor, "batch query source"]:
    """How much of each source token every step of a recorded decoder read: the mean over heads.

    Of the last layer but one where there are several, which is where Garg et al. 2019, "Jointly
    Learning to Align and Translate with Transformer Models", found alignments. Which attention
    aligns best in a model is measured elsewhere (`lens/alignment.py`); coverage needs to know how
    much was read in all, for which one layer's mean is as good as another's.

    Raises:
        UsageError: nothing that attends to a source was recorded.
    """
    layers: dict[int, list[AttentionRecord | ScoreRecord]] = {}
    for entry in trace:
        if isinstance(entry, AttentionRecord | ScoreRecord) and entry.site.kind == "cross":
            layers.setdefault(entry.site.layer, []).append(entry)
    if not layers:
        raise UsageError(
            "This model has no attention over the source: it offers no alignment and no coverage."
        )
    chosen = sorted(layers)[-2:][0]
    # Several records where a decoder reads its target token by token.
    return torch.cat([entry.weights.mean(dim=1) for entry in layers[chosen]], dim=1)


@dataclass(frozen=True)
class Covered(Generic[State]):
    """A decoder's state, and how much of each source token every beam has read so far."""

    inner: State
    read: Float[Tensor, "sentence beam source"]
    real: Bool[Tensor, "sentence source"]


class Coverage(Generic[State]):
    """The Step protocol around a model: adds up its attention, which a recorder sees.

    `bonus` is the coverage penalty cp of Wu et al. 2016, "Google's Neural Machine Translation
    System", equation (14): the sum over source tokens of log(min(what was read of it, 1)).
    """

    def __init__(
        self, model: Step[State], real: Bool[Tensor, "sentence source"], penalty: float
    ) -> None:
        """Wrap a model; `real` says which source tokens are not padding, `penalty` is beta."""
        self.model = model
        self.real = real
        self.penalty = penalty

    def start(
        self, source: Int[Tensor, "sentence source"], beams: int, max_length: int
    ) -> Covered[State]:
        """Start with nothing read."""
        read = torch.zeros((len(source), beams, source.shape[1]), device=source.device)
        return Covered(self.model.start(source, beams, max_length), read, self.real)

    def step(
        self, tokens: Int[Tensor, "sentence beam"], state: Covered[State]
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], Covered[State]]:
        """Add what this step reads."""
        with overhear() as trace:
            log_probabilities, inner = self.model.step(tokens, state.inner)
        return log_probabilities, Covered(inner, state.read + read_from_source(trace), state.real)

    def reorder(self, state: Covered[State], beams: Int[Tensor, "sentence beam"]) -> Covered[State]:
        """Each beam goes on from what its origin has read."""
        rows = beams[..., None].expand_as(state.read)
        inner = self.model.reorder(state.inner, beams)
        return replace(state, inner=inner, read=state.read.gather(1, rows))

    def keep(self, state: Covered[State], sentences: Int[Tensor, " kept"]) -> Covered[State]:
        """Drop all sentences but these."""
        inner = self.model.keep(state.inner, sentences)
        return Covered(inner, state.read[sentences], state.real[sentences])

    def bonus(self, state: Covered[State]) -> Float[Tensor, "sentence beam"]:
        """Compute beta times cp for every beam: 0 when all was read, else below."""
        least = torch.finfo(state.read.dtype).tiny
        logs = state.read.clamp(least, 1.0).log().masked_fill(~state.real[:, None], 0.0)
        return self.penalty * logs.sum(dim=-1)
