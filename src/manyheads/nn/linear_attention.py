"""Attention whose cost grows with the number of tokens, not with its square.

Source: Katharopoulos et al. 2020, "Transformers are RNNs", section 3.2, equations 5 and 7.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.attention import MultiHeadAttention
from manyheads.nn.flow import Flow, keep_flow
from manyheads.nn.moments import Moment
from manyheads.nn.places import Places
from manyheads.nn.trace import Site, active, refuse_compiled
from manyheads.nn.windows import Windows


def feature_map(x: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
    """phi(x) = elu(x) + 1: positive, so that similarities are (equation 7)."""
    return F.elu(x) + 1


def implied_weights(
    q: Float[Tensor, "*batch query size"],
    k: Float[Tensor, "*batch key size"],
    present: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """phi(q) phi(k)^T, each row divided by its sum: the map that is never formed.

    Times V it is what `linear_attend` answers; where no key is present, zeros.
    """
    scores = feature_map(q) @ feature_map(k).transpose(-2, -1)
    if present is not None:
        scores = scores * present
    return scores / scores.sum(-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)


def linear_attend(
    q: Float[Tensor, "batch head query size"],
    k: Float[Tensor, "batch head key size"],
    v: Float[Tensor, "batch head key value"],
    present: Bool[Tensor, "batch 1 1 key"] | None = None,
) -> Float[Tensor, "batch head query value"]:
    """phi(q) (phi(k)^T v) / (phi(q) sum phi(k)): keys meet values first (equation 5)."""
    q, k = feature_map(q), feature_map(k)
    if present is not None:
        k = k * present.transpose(-2, -1)
    total = (q @ k.sum(-2).unsqueeze(-1)).clamp_min(torch.finfo(q.dtype).tiny)
    return q @ (k.transpose(-2, -1) @ v) / total


@dataclass(frozen=True, slots=True)
class ImpliedRecord:
    """What a recorder keeps of a linear attention: its site says that the map is implied only."""

    site: Site
    q: Float[Tensor, "batch head query size"]
    k: Float[Tensor, "batch head key size"]
    mask: Bool[Tensor, "..."] | None
    tokens: Places | None = None  # where they stand in a picture
    keys: Places | None = None  # where keys stand that are not the tokens themselves
    moment: Moment | None = None  # of a search
    flow: Flow | None = None  # of a recorder of gradients

    @property
    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The map that would have given the same answer, in fp32."""
        return implied_weights(self.q.float(), self.k.float(), self.mask)


class LinearAttention(MultiHeadAttention):
    """The same projections around `linear_attend`; a mask may hide keys, from all queries alike."""

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Bool[Tensor, "..."] | None,
        bias: Float[Tensor, "..."] | None = None,
        windows: Windows | None = None,
        keys: Places | None = None,
        new: Tensor | None = None,
    ) -> Float[Tensor, "batch token output"]:
        if bias is not None or (mask is not None and mask.shape[-2] != 1):
            raise UsageError(
                "Linear attention forms no map, so it can take neither a bias nor a mask that "
                "differs from query to query (a causal one): use softmax attention there."
            )
        trace = active()
        if trace is not None and torch.compiler.is_compiling():
            refuse_compiled()
        heads = linear_attend(q, k, v, mask)
        if trace is not None:
            site = replace(self.site, kind=f"{self.site.kind} (implied)")
            compared = (q.detach(), k.detach(), mask)
            flow = keep_flow(v, [heads])
            places = (trace.here, keys)
            trace.add(ImpliedRecord(site, *compared, *places, trace.moment, flow))
        return self.out(heads.transpose(1, 2).flatten(2))
