"""What is recorded of one call of softmax attention: all of it, or a step of a search."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.nn.attention.softmax import EditedRecord, SoftmaxRecord
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.recording.attention_record import (
    ALL,
    AttentionContext,
    ShortRepr,
    record_values,
    take,
)
from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.trace import LayerId, Trace
from manyheads.nn.shapes import Bias, Mask


@dataclass(frozen=True, slots=True, repr=False)
class CachedRecord(ShortRepr):
    """Causal self-attention in one step of a search: only the new queries and keys.

    The other keys are in the records of earlier steps. To keep all keys of each step would copy
    the cache, because beams are reordered in it.
    """

    layer_id: LayerId
    q: Float[Tensor, "row head new size"]
    k: Float[Tensor, "row head new size"]
    keys: int  # in the cache, the new ones included
    decode_step: DecodeStep
    mask: Mask | None = None  # of the new queries and all keys, as the bias
    bias: Bias | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys of the map."""
        batch, heads, queries, _ = self.q.shape
        return batch, heads, queries, self.keys

    def select(self, row: int) -> "CachedRecord":
        """Take one row of the batch."""
        own = slice(row, row + 1)
        mask, bias = take(self.mask, own, ALL), take(self.bias, own, ALL)
        q, k = self.q[own], self.k[own]
        return CachedRecord(self.layer_id, q, k, self.keys, self.decode_step, mask, bias)

    def join(self, later: Sequence["CachedRecord"]) -> SoftmaxRecord:
        """Join the steps of one row to the causal attention over the whole sequence."""
        steps = (self, *later)
        q, k = (torch.cat(each, dim=2) for each in ([s.q for s in steps], [s.k for s in steps]))
        heads, keys = q.shape[1], k.shape[2]
        mask = causal_mask(keys, k.device).repeat(1, heads, 1, 1)
        bias = None if all(s.bias is None for s in steps) else q.new_zeros(1, heads, keys, keys)
        for step in steps:  # an attention of one's own may have a mask and a bias in each
            queries = slice(step.keys - step.q.shape[2], step.keys)
            if step.mask is not None:
                mask[:, :, queries, : step.keys] &= step.mask
            if bias is not None and step.bias is not None:
                bias[:, :, queries, : step.keys] = step.bias
        return SoftmaxRecord(self.layer_id, q, k, mask, bias=bias)


def softmax_record(
    context: AttentionContext,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask | None,
    bias: Bias | None,
    out: Tensor,
    trace: Trace,
    *,
    pattern: Tensor | None = None,
) -> SoftmaxRecord | CachedRecord | EditedRecord:
    """Build the record of one call of `attend`; of a step with a cache only its new keys."""
    step, new = trace.decode_step, context.new_keys
    if pattern is not None:
        return EditedRecord(
            context.layer_id,
            q.detach(),
            k.detach(),
            mask,
            context.query_grid,
            context.key_grid,
            context.partition,
            step,
            record_values(v, [out]),
            pattern=pattern.detach(),
        )
    bias = None if bias is None else bias.detach()
    if new is not None and step is not None:
        own = q.detach(), new.detach(), k.shape[2], step, mask, bias
        return CachedRecord(context.layer_id, *own)
    place = (context.query_grid, context.key_grid, context.partition, step)
    rest = (*place, record_values(v, [out]), bias)
    return SoftmaxRecord(context.layer_id, q.detach(), k.detach(), mask, *rest)
