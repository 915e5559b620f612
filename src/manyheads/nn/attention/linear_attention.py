"""Attention whose cost grows with the number of tokens, not with its square.

Source: Katharopoulos et al. 2020, "Transformers are RNNs", section 3.2, equations 5 and 7.
"""

from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.softmax import QueryKeyRecord
from manyheads.nn.editing.seam import HEAD, INPUTS, edited_pattern, is_open, visit
from manyheads.nn.layers.masks import check_mask
from manyheads.nn.recording.attention_record import ALL, AttentionContext, record_values, take
from manyheads.nn.recording.trace import LayerId, Trace, active
from manyheads.nn.shapes import Bias, Mask


def feature_map(x: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
    """phi(x) = elu(x) + 1: positive, so that similarities are (equation 7)."""
    return F.elu(x) + 1


def implied_weights(
    q: Float[Tensor, "*batch query size"],
    k: Float[Tensor, "*batch key size"],
    present: Mask | None = None,
) -> Float[Tensor, "*batch query key"]:
    """phi(q) phi(k)^T, each row divided by its sum: the map that is never formed.

    Times V it is the output of `linear_attend`; where no key is present, zeros.
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
    check_mask(present)
    q, k = feature_map(q), feature_map(k)
    if present is not None:
        k = k * present.transpose(-2, -1)
    total = (q @ k.sum(-2).unsqueeze(-1)).clamp_min(torch.finfo(q.dtype).tiny)
    return q @ (k.transpose(-2, -1) @ v) / total


@dataclass(frozen=True, slots=True, repr=False)
class ImpliedRecord(QueryKeyRecord):
    """Of linear attention; its layer says that the map is only implied."""

    def weights(
        self, rows: slice = ALL, queries: slice = ALL
    ) -> Float[Tensor, "row head query key"]:
        """Compute the map that gives the same output, for some batch rows and queries, in fp32."""
        q, k = self.q[rows, :, queries].float(), self.k[rows].float()
        return implied_weights(q, k, take(self.mask, rows, queries))


def implied_record(
    context: AttentionContext,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask | None,
    out: Tensor,
    trace: Trace,
) -> ImpliedRecord:
    """Build the record of one call of `linear_attend`."""
    layer_id = replace(context.layer_id, kind=f"{context.layer_id.kind} (implied)")
    place = (context.query_grid, context.key_grid, context.partition, trace.decode_step)
    return ImpliedRecord(layer_id, q.detach(), k.detach(), mask, *place, record_values(v, [out]))


def _visited(layer_id: LayerId, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Pass the sites of queries, keys and values."""

    def refuse() -> Tensor:
        raise UsageError(
            f"Linear attention forms no map that {layer_id} could replace: edit its heads, or q, k "
            "and v."
        )

    edited_pattern(layer_id, refuse)
    return [
        visit(layer_id, f"{layer_id.kind} {part}", x, keys=part != "q")
        for part, x in zip(INPUTS, inputs, strict=True)
    ]


class LinearAttention(MultiHeadAttention):
    """The same projections around `linear_attend`; a mask may hide keys, from all queries alike."""

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask | None,
        bias: Bias | None,
        context: AttentionContext,
    ) -> Float[Tensor, "batch token output"]:
        if bias is not None or (mask is not None and mask.shape[-2] != 1):
            raise UsageError(
                "Linear attention forms no map, so it can take neither a bias nor a mask that "
                "differs from query to query (a causal one): use softmax attention there."
            )
        if is_open():
            q, k, v = _visited(self.layer_id, (q, k, v))
        heads = linear_attend(q, k, v, mask)
        if is_open():
            heads = visit(self.layer_id, f"{self.layer_id.kind} {HEAD}", heads)
        trace = active()
        if trace is not None:
            trace.note(partial(implied_record, context, q, k, v, mask, heads))
        return self.out(heads.transpose(1, 2).flatten(2))
