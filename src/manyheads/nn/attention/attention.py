"""The attention of every Transformer here: one pure function and one module.

Encoders, decoders, images, text and recording are reshapes around these. The softmax, to be read
beside the paper, is in `softmax.py`.
Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2, equation (1).
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.attention.rotary import Rotate, unrotated
from manyheads.nn.attention.softmax import attention_weights
from manyheads.nn.attention.softmax_record import softmax_record
from manyheads.nn.editing.seam import HEAD, edited_pattern, is_open, visit
from manyheads.nn.layers.cache import KeyValue, KeyValueCache
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.masks import check_bias, check_mask
from manyheads.nn.recording.attention_record import AttentionContext, Partition
from manyheads.nn.recording.trace import LayerId, active
from manyheads.nn.recording.tracking import current_grid, grid_of
from manyheads.nn.shapes import BeamVectors, Bias, Mask, Tokens, check_axes


def attend(
    q: Float[Tensor, "batch head query size"],
    k: Float[Tensor, "batch head key size"],
    v: Float[Tensor, "batch head key value"],
    mask: Mask | None = None,
    bias: Bias | None = None,
    *,
    dropout: float = 0.0,
    context: AttentionContext = AttentionContext(),
) -> Float[Tensor, "batch head query value"]:
    """Compute softmax(QK^T / sqrt(d_k)) V, equation (1), with the fused kernel where that is fast.

    An open recorder only keeps q and k, with the context, so recording never changes the result.
    An open edit may change q, k, v, the map, which is then computed by the formula, and the output.

    Raises:
        UsageError: the mask is not boolean or the bias is, q lacks an axis, or a recorder is open
            while torch.compile traces the model.
    """
    check_mask(mask)
    check_bias(bias)
    check_axes(q, "batch head query size")
    if is_open():
        return _attend_open(q, k, v, mask, bias, dropout, context)
    out = _mix(q, k, v, mask, bias, dropout)
    trace = active()
    if trace is not None:
        trace.note(partial(softmax_record, context, q, k, v, mask, bias, out))
    return out


def _attend_open(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    dropout: float,
    context: AttentionContext,
) -> Tensor:
    """The same, past the sites of an attention."""
    layer_id, cut = context.layer_id, context.partition is not None
    new = context.new_keys is None  # else keys and values are those of a cache
    q = visit(layer_id, f"{layer_id.kind} q", q, partitioned=cut)
    k, v = (
        visit(layer_id, f"{layer_id.kind} {part}", x, keys=True, partitioned=cut, keep=new)
        for part, x in (("k", k), ("v", v))
    )
    weights = edited_pattern(layer_id, lambda: attention_weights(q, k, mask, bias), partitioned=cut)
    formula = None if weights is None else F.dropout(weights, dropout) @ v
    out = _mix(q, k, v, mask, bias, dropout) if formula is None else formula
    out = visit(layer_id, f"{layer_id.kind} {HEAD}", out, partitioned=cut)
    trace = active()
    if trace is not None:
        trace.note(partial(softmax_record, context, q, k, v, mask, bias, out, pattern=weights))
    return out


def _mix(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> Tensor:
    """Compute the output, by the fused kernel or by the formula."""
    if dropout == 0.0 and _formula_is_faster(q, k):
        return attention_weights(q, k, mask, bias) @ v
    if bias is not None:  # the kernel takes one mask: boolean, or float to be added
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


def _formula_is_faster(q: Tensor, k: Tensor) -> bool:
    """Whether plain products are faster than the fused kernel: docs/decisions/fused-kernel.md.

    On a CPU it does for the few queries of a decoding step; in bf16 for gradients, and while all
    maps together, which it exists to avoid, are small. An exported model takes the kernel for every
    size: a choice by size would fix the sizes that it was exported with.
    """
    if torch.compiler.is_exporting():
        return False
    queries, keys = q.shape[-2], k.shape[-2]
    if q.device.type != "cpu" or queries * keys > 512 * 512:
        return False
    learning = q.requires_grad and torch.is_grad_enabled()
    small = learning or q.numel() // q.shape[-1] * keys <= 4 * 2**20
    return queries <= 4 or (small and q.dtype == torch.bfloat16)


class MultiHeadAttention(nn.Module):
    """Several attentions of width dim / heads side by side (section 3.2.2), in one projection.

    The 3h projections of the paper are the rows of one matrix; `per_head.py` has the paper's own
    form and a test that the two are equal. The same parameters serve self-attention (`forward`),
    attention over another sequence (`project` once, then `cross_attend`) and decoding (`step`).

    `rotate` is called with the queries or keys of self-attention and the position of the first of
    them (see `rotary.py`). Recorded are the rotated ones.

    Queries, keys and values are `attention_dim` wide and the output `outputs`; both default to
    `dim`. With a `source_dim`, keys and values come from another sequence of this width only.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        attention_dim: int | None = None,
        outputs: int | None = None,
        source_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotate: Rotate = unrotated,
    ) -> None:
        super().__init__()
        size = attention_dim or dim
        if size % heads:
            raise UsageError(
                f"dim {size} cannot be split into {heads} heads: choose a divisor of it."
            )
        self.heads = heads
        self.dropout = dropout
        self.rotate = rotate
        self.layer_id = LayerId()  # set by the stack, for recording
        own = source_dim in (None, dim)  # one projection for all three
        self.qkv = Linear(dim, (3 if own else 1) * size, bias=bias)
        if source_dim is not None and not own:
            self.kv = Linear(source_dim, 2 * size, bias=bias)
        self.out = Linear(size, outputs or dim)

    def forward(
        self,
        x: Tokens,
        mask: Mask | None = None,
        bias: Bias | None = None,
        partition: Partition | None = None,
    ) -> Float[Tensor, "batch token output"]:
        """Self-attention: queries, keys and values all come from x.

        Args:
            x: tokens, or parts of examples as rows of the batch.
            mask: True where a query may attend.
            bias: added to the scores.
            partition: which tokens the rows of the batch are, for a recorder.
        """
        q, k, v = (self._split(part) for part in self.qkv(x).chunk(3, dim=-1))
        context = self._context(partition=partition)
        return self._attend(self.rotate(q, 0), self.rotate(k, 0), v, mask, bias, context)

    def prefill(self, x: Tokens, mask: Mask, cache: KeyValueCache) -> tuple[Tokens, KeyValueCache]:
        """Self-attention of tokens behind those of the cache, which keeps them for `step`."""
        q, k, v = (self._split(part) for part in self.qkv(x).chunk(3, dim=-1))
        q, k = self.rotate(q, cache.length), self.rotate(k, cache.length)
        cache = cache.append(k, v)
        context = self._context(new_keys=k)
        return self._attend(q, cache.keys, cache.values, mask, None, context), cache

    def project(self, source: Float[Tensor, "batch key dim"]) -> KeyValue:
        """Compute the keys and values of a source, once for all queries and decoding steps."""
        dim = self.out.in_features
        own = self.qkv.out_features > dim
        both = self.qkv.forward_slice(source, dim, 3 * dim) if own else self.kv(source)
        k, v = both.chunk(2, dim=-1)
        return KeyValue(self._split(k), self._split(v), grid_of(source))

    def cross_attend(self, x: Tokens, source: KeyValue, mask: Mask | None = None) -> Tokens:
        """Encoder-decoder attention: queries from x, keys and values from a projected source."""
        # The queries are text, or the learned query of a pool: they have no position in an image.
        context = AttentionContext(self.layer_id, key_grid=source.grid)
        return self._attend(self._queries(x), source.k, source.v, mask, None, context)

    def cross_weights(
        self, x: Tokens, source: KeyValue, mask: Mask | None = None
    ) -> Float[Tensor, "batch head query key"]:
        """Compute the map of `cross_attend` in fp32, as a result of the model."""
        return attention_weights(self._queries(x).float(), source.k.float(), mask)

    def step(self, x: BeamVectors, cache: KeyValueCache) -> tuple[BeamVectors, KeyValueCache]:
        """Causal self-attention for one new token a beam; the past comes from the cache."""
        new = self.qkv(x.flatten(0, 1).unsqueeze(1))  # every beam is a row with a past of its own
        q, k, v = (self._split(part) for part in new.chunk(3, dim=-1))
        q, k = self.rotate(q, cache.length), self.rotate(k, cache.length)
        cache = cache.append(k, v)
        context = self._context(new_keys=k)
        return self._attend(q, cache.keys, cache.values, None, None, context).view_as(x), cache

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask | None,
        bias: Bias | None,
        context: AttentionContext,
    ) -> Float[Tensor, "batch token output"]:
        rate = self.dropout if self.training else 0.0
        heads = attend(q, k, v, mask, bias, dropout=rate, context=context).transpose(1, 2)
        if torch.compiler.is_exporting():  # what runs the graph may lay out the result differently
            heads = heads.clone(memory_format=torch.contiguous_format)
        return self.out(heads.flatten(2))  # batch token dim again

    def _context(
        self, *, partition: Partition | None = None, new_keys: Tensor | None = None
    ) -> AttentionContext:
        """Describe self-attention, whose queries and keys are the same tokens."""
        grid = current_grid()
        return AttentionContext(self.layer_id, grid, grid, partition, new_keys)

    def _queries(self, x: Tokens) -> Float[Tensor, "..."]:
        return self._split(self.qkv.forward_slice(x, 0, self.out.in_features))

    def _split(self, x: Tokens) -> Float[Tensor, "batch head token size"]:
        check_axes(x, "batch token dim")
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
