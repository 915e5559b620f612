"""The one attention of the house: two pure functions and one module.

Everything else - encoder, decoder, images, text, looking inside - is a reshape around these.
Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2, equation (1).
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.cache import KeyValue, KeyValueCache
from manyheads.nn.flow import Flow, keep_flow
from manyheads.nn.linear import Linear
from manyheads.nn.moments import CachedRecord, Moment
from manyheads.nn.places import Places
from manyheads.nn.rotary import Rotate, unrotated
from manyheads.nn.trace import Site, active, refuse_compiled
from manyheads.nn.windows import Windows


def attention_weights(
    q: Float[Tensor, "*batch query size"],
    k: Float[Tensor, "*batch key size"],
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Compute softmax(QK^T / sqrt(d_k)), the left half of equation (1).

    Args:
        q: queries.
        k: keys.
        mask: True where a query may attend; broadcasts to the result.
        bias: added to the scores before the softmax, for example relative positions.

    Returns:
        For each query a distribution over keys; all zeros where it may attend to nothing.
    """
    # Without the square root the dot products grow with d_k and the softmax saturates (T5a).
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return normalise(scores if bias is None else scores + bias, mask)


def normalise(
    scores: Float[Tensor, "*batch query key"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch query key"]:
    """Turn scores of any origin into weights: a masked softmax over keys; empty rows give zeros."""
    if mask is None:
        return scores.softmax(dim=-1)
    # The lowest finite number instead of -inf: softmax over a row of -inf would be NaN, while the
    # fused kernel answers zeros. Masking once more afterwards makes the two agree.
    lowest, hidden = torch.finfo(scores.dtype).min, ~mask
    return scores.masked_fill(hidden, lowest).softmax(dim=-1).masked_fill(hidden, 0.0)


@dataclass(frozen=True, slots=True)
class AttentionRecord:
    """What a recorder keeps of one attention: queries and keys; the map is computed when read."""

    site: Site
    q: Float[Tensor, "batch head query size"]
    k: Float[Tensor, "batch head key size"]
    mask: Bool[Tensor, "..."] | None
    bias: Float[Tensor, "..."] | None
    windows: Windows | None = None  # which tokens are meant, where each window is a batch row
    tokens: Places | None = None  # where they stand in a picture
    keys: Places | None = None  # where keys stand that are not the tokens themselves
    moment: Moment | None = None  # of a search
    flow: Flow | None = None  # of a recorder of gradients

    @property
    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The attention map, in fp32."""
        bias = None if self.bias is None else self.bias.float()
        return attention_weights(self.q.float(), self.k.float(), self.mask, bias)

    @property
    def whole(self) -> Float[Tensor, "image head query key"]:
        """The map over all tokens of an image; zeros between windows."""
        return self.weights if self.windows is None else self.windows.spread(self.weights)


def attend(
    q: Float[Tensor, "batch head query size"],
    k: Float[Tensor, "batch head key size"],
    v: Float[Tensor, "batch head key value"],
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    *,
    dropout: float = 0.0,
    site: Site = Site(),
    windows: Windows | None = None,
    keys: Places | None = None,
    new: Float[Tensor, "batch head 1 size"] | None = None,
) -> Float[Tensor, "batch head query value"]:
    """Compute softmax(QK^T / sqrt(d_k)) V, equation (1), with the fused kernel where that is fast.

    An open recorder only keeps q and k, so looking never changes the answer. `windows` says for
    the record which tokens the rows of the batch are, `keys` where keys of their own stand, `new`
    which of the keys a step of decoding has added.

    Raises:
        UsageError: a recorder is open while torch.compile traces the model.
    """
    trace = active()
    if trace is not None and torch.compiler.is_compiling():
        refuse_compiled()
    out = _mix(q, k, v, mask, bias, dropout)
    if trace is not None:
        if new is not None and trace.moment is not None:
            trace.add(CachedRecord(site, q.detach(), new.detach(), trace.moment))
        else:
            kept = (q.detach(), k.detach(), mask, None if bias is None else bias.detach(), windows)
            where = (trace.here, keys, trace.moment)
            trace.add(AttentionRecord(site, *kept, *where, keep_flow(v, [out])))
    return out


def _mix(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float
) -> Tensor:
    """Answer, by the kernel or the formula."""
    if dropout == 0.0 and _formula_is_faster(q, k):
        return attention_weights(q, k, mask, bias) @ v
    if bias is not None:  # the kernel takes one mask: boolean, or float to be added
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


def _formula_is_faster(q: Tensor, k: Tensor) -> bool:
    """Say whether the fused kernel loses to plain products: docs/decisions/fused-kernel.md.

    On a CPU it does for the few queries of a decoding step; in bf16 for gradients, and while all
    maps together, which it exists to avoid, are small.
    """
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
    attention over another sequence (`project` once, then `over`) and decoding (`step`).

    `rotate` is given the queries and keys of self-attention and the position of the first of them
    (see `rotary.py`). What is recorded is what was compared: rotated.

    Queries, keys and values are `inner` wide and the output `outputs`; by default both are `dim`.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        inner: int | None = None,
        outputs: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotate: Rotate = unrotated,
    ) -> None:
        super().__init__()
        inner = inner or dim
        if inner % heads:
            raise UsageError(
                f"dim {inner} cannot be split into {heads} heads: choose a divisor of it."
            )
        self.heads = heads
        self.dropout = dropout
        self.rotate = rotate
        self.site = Site()  # set once by the stack, for recording
        self.qkv = Linear(dim, 3 * inner, bias=bias)
        self.out = Linear(inner, outputs or dim)

    def forward(
        self,
        x: Float[Tensor, "batch token dim"],
        mask: Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | None = None,
        windows: Windows | None = None,
    ) -> Float[Tensor, "batch token output"]:
        """Self-attention: queries, keys and values all come from x."""
        q, k, v = (self._split(part) for part in self.qkv(x).chunk(3, dim=-1))
        return self._attend(self.rotate(q, 0), self.rotate(k, 0), v, mask, bias, windows)

    def read(
        self,
        x: Float[Tensor, "batch token dim"],
        mask: Bool[Tensor, "..."],
        cache: KeyValueCache,
    ) -> tuple[Float[Tensor, "batch token dim"], KeyValueCache]:
        """Self-attention over a beginning, whose keys and values fill an empty cache for `step`."""
        q, k, v = (self._split(part) for part in self.qkv(x).chunk(3, dim=-1))
        q, k = self.rotate(q, 0), self.rotate(k, 0)
        return self._attend(q, k, v, mask), cache.append(k, v)

    def project(self, source: Float[Tensor, "batch key dim"]) -> KeyValue:
        """Compute the keys and values of a source, once for all queries and decoding steps."""
        dim = self.out.in_features
        k, v = self.qkv.part(source, dim, 3 * dim).chunk(2, dim=-1)
        return KeyValue(self._split(k), self._split(v))

    def over(
        self,
        x: Float[Tensor, "batch token dim"],
        source: KeyValue,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """Encoder-decoder attention: queries from x, keys and values from a projected source."""
        q = self._split(self.qkv.part(x, 0, self.out.in_features))
        return self._attend(q, *source, mask)

    def step(
        self, x: Float[Tensor, "sentence beam dim"], cache: KeyValueCache
    ) -> tuple[Float[Tensor, "sentence beam dim"], KeyValueCache]:
        """Causal self-attention for one new token a beam; the past comes from the cache."""
        new = self.qkv(x.flatten(0, 1).unsqueeze(1))  # every beam is a row with a past of its own
        q, k, v = (self._split(part) for part in new.chunk(3, dim=-1))
        q, k = self.rotate(q, cache.length), self.rotate(k, cache.length)
        cache = cache.append(k, v)
        return self._attend(q, cache.keys, cache.values, None, new=k).view_as(x), cache

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
        rate = self.dropout if self.training else 0.0
        heads = attend(
            q, k, v, mask, bias, dropout=rate, site=self.site, windows=windows, keys=keys, new=new
        )
        return self.out(heads.transpose(1, 2).flatten(2))  # batch token dim again

    def _split(self, x: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch head token size"]:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
