"""Attention of a recurrent decoder over the encoder's states (atlas T4).

The query is the decoder's state, the keys and values are the encoder's. What differs is the score;
its softmax, its mask and its record are those of `attention.py`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.nn.attention import normalise
from manyheads.nn.flow import Flow, keep_flow
from manyheads.nn.linear import Linear
from manyheads.nn.moments import Moment
from manyheads.nn.trace import Site, active, refuse_compiled


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """What a recorder keeps of an attention whose scores are not QK^T: the scores."""

    site: Site
    scores: Float[Tensor, "batch head query key"]
    mask: Bool[Tensor, "..."] | None
    moment: Moment | None = None  # of a search
    flow: Flow | None = None  # of a recorder of gradients

    @property
    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The attention map, in fp32."""
        return normalise(self.scores.float(), self.mask)


def keep_scores(
    scores: Float[Tensor, "batch head query key"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    site: Site,
    flow: Flow | None = None,
) -> None:
    """Record scores of any origin, if a recorder is open; `flow` is what their weights mixed.

    Raises:
        UsageError: a recorder is open while torch.compile traces the model.
    """
    trace = active()
    if trace is not None:
        if torch.compiler.is_compiling():
            refuse_compiled()
        trace.add(ScoreRecord(site, scores.detach(), mask, trace.moment, flow))


class AdditiveScore(nn.Module):
    """e_ij = v . tanh(W s_i + U h_j) (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.w = Linear(size, size, bias=False)
        self.u = Linear(size, size, bias=False)
        self.v = Linear(size, 1, bias=False)

    def project(self, memory: Float[Tensor, "batch key size"]) -> Float[Tensor, "batch key size"]:
        """U h_j does not depend on the query: computed once a source."""
        return self.u(memory)

    def forward(
        self, query: Float[Tensor, "batch query size"], keys: Float[Tensor, "batch key size"]
    ) -> Float[Tensor, "batch query key"]:
        """Compare every query with every key."""
        return self.v((self.w(query)[:, :, None] + keys[:, None]).tanh())[..., 0]


class DotScore(nn.Module):
    """s_i . h_j (Luong et al. 2015, 3.1)."""

    def __init__(self, size: int) -> None:
        super().__init__()

    def project(self, memory: Float[Tensor, "batch key size"]) -> Float[Tensor, "batch key size"]:
        """Take the states as they are."""
        return memory

    def forward(
        self, query: Float[Tensor, "batch query size"], keys: Float[Tensor, "batch key size"]
    ) -> Float[Tensor, "batch query key"]:
        """Compare every query with every key."""
        return query @ keys.transpose(1, 2)


class GeneralScore(nn.Module):
    """s_i . W h_j (Luong et al. 2015, 3.1)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.w = Linear(size, size, bias=False)

    def project(self, memory: Float[Tensor, "batch key size"]) -> Float[Tensor, "batch key size"]:
        """W h_j does not depend on the query: computed once a source."""
        return self.w(memory)

    def forward(
        self, query: Float[Tensor, "batch query size"], keys: Float[Tensor, "batch key size"]
    ) -> Float[Tensor, "batch query key"]:
        """Compare every query with every key."""
        return query @ keys.transpose(1, 2)


class Source(NamedTuple):
    """What the decoder reads of a source: keys to compare with, values to take the mean of."""

    keys: Float[Tensor, "batch key size"]
    values: Float[Tensor, "batch key size"]
    mask: Bool[Tensor, "batch 1 1 key"]


class GlobalAttention(nn.Module):
    """a_t = tanh(W [c_t; s_t]): what the source says to a state (Luong et al. 2015, equation 5).

    c_t is the mean of the encoder's states, weighted by softmax(score(s_t, h_j)).
    """

    def __init__(self, score: AdditiveScore | DotScore | GeneralScore, size: int, out: int) -> None:
        super().__init__()
        self.score = score
        self.combine = Linear(2 * size, out)
        self.site = Site("decoder", 0, "cross")  # set once by the model

    def project(
        self, memory: Float[Tensor, "batch key size"], mask: Bool[Tensor, "batch 1 1 key"]
    ) -> Source:
        """Prepare a source, once for all queries and steps."""
        return Source(self.score.project(memory), memory, mask)

    def scores(
        self, query: Float[Tensor, "batch query size"], source: Source
    ) -> Float[Tensor, "batch 1 query key"]:
        """Compare states with the source; the 1 is the head that other attentions have many of."""
        return self.score(query, source.keys)[:, None]

    def context(
        self, scores: Float[Tensor, "batch 1 query key"], source: Source
    ) -> Float[Tensor, "batch query value"]:
        """Weigh the source by the scores."""
        return normalise(scores, source.mask)[:, 0] @ source.values

    def join(
        self, context: Float[Tensor, "batch query value"], query: Float[Tensor, "batch query size"]
    ) -> Float[Tensor, "batch query out"]:
        """Join what the source says to the states."""
        return self.combine(torch.cat((context, query), dim=-1)).tanh()

    def forward(
        self, query: Float[Tensor, "batch query size"], source: Source
    ) -> Float[Tensor, "batch query out"]:
        """Let states look at a source: those of a whole target, or of all beams at one step."""
        scores = self.scores(query, source)
        context = self.context(scores, source)
        flow = keep_flow(source.values, [context])
        keep_scores(scores, source.mask, site=self.site, flow=flow)
        return self.join(context, query)


class NoAttention(nn.Module):
    """a_t = tanh(W s_t): the state alone must know all of the source (atlas T3)."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.combine = Linear(size, out)

    def project(
        self, memory: Float[Tensor, "batch key size"], mask: Bool[Tensor, "batch 1 1 key"]
    ) -> Source:
        """Keep nothing of a source but its number of sentences."""
        return Source(memory[:, :0], memory[:, :0], mask[..., :0])

    def forward(
        self, query: Float[Tensor, "batch query size"], source: Source
    ) -> Float[Tensor, "batch query out"]:
        """Join nothing to the states."""
        return self.combine(query).tanh()
