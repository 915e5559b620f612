"""The softmax of attention, and the record from which its map is computed when it is read.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2, equation (1), the left half.
"""

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.nn.layers.masks import check_bias, check_mask
from manyheads.nn.recording.attention_record import (
    ALL,
    Partition,
    ShortRepr,
    ValueRecord,
    take,
)
from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.shapes import Bias, Mask

# Keys in a row that does not fill the vector instructions of torch's softmax over rows: its columns
# do, side by side.
SHORT = 32


def attention_weights(
    q: Float[Tensor, "*batch query size"],
    k: Float[Tensor, "*batch key size"],
    mask: Mask | None = None,
    bias: Bias | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Compute softmax(QK^T / sqrt(d_k)), the left half of equation (1).

    Args:
        q: queries.
        k: keys.
        mask: True where a query may attend; broadcasts to the result.
        bias: added to the scores before the softmax, for example relative positions.

    Returns:
        For each query a distribution over keys; all zeros where it may attend to nothing.

    Raises:
        UsageError: the mask is not boolean, or the bias is.
    """
    check_bias(bias)
    # Without the square root the dot products grow with d_k and the softmax saturates (T5a).
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return normalise(scores if bias is None else scores + bias, mask)


def normalise(
    scores: Float[Tensor, "*batch query key"], mask: Mask | None = None
) -> Float[Tensor, "*batch query key"]:
    """Turn scores of any origin into weights: a masked softmax over keys; empty rows give zeros."""
    check_mask(mask)
    learning = scores.requires_grad and torch.is_grad_enabled()
    if learning and scores.is_cpu and not torch.compiler.is_compiling():
        return _with_gradients(scores, mask)
    if mask is None:
        return scores.softmax(dim=-1)
    # The lowest finite number instead of -inf: softmax over a row of -inf would be NaN, while the
    # fused kernel returns zeros. Masking once more afterwards makes the two agree.
    lowest, hidden = torch.finfo(scores.dtype).min, ~mask
    return scores.masked_fill(hidden, lowest).softmax(dim=-1).masked_fill(hidden, 0.0)


def _with_gradients(
    scores: Float[Tensor, "*batch query key"], mask: Mask | None
) -> Float[Tensor, "*batch query key"]:
    """The same, but for the last digit, in less time: docs/decisions/training-speed.md."""
    if mask is not None:
        # Added, which costs no gradient; half of the lowest, so that no sum is below it.
        low = torch.zeros_like(mask, dtype=scores.dtype)
        scores = scores + low.masked_fill_(~mask, torch.finfo(scores.dtype).min / 2)
    if scores.shape[-1] < SHORT:
        columns = scores.flatten(0, -2).t().contiguous()
        weights = columns.softmax(dim=0).t().contiguous().view(scores.shape)
    else:
        weights = scores.softmax(dim=-1)
    if mask is None or mask.any(dim=-1).all():
        return weights
    return weights.masked_fill(~mask, 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class QueryKeyRecord(ShortRepr):
    """Queries and keys of one attention; the map is computed when it is read."""

    layer_id: LayerId
    q: Float[Tensor, "batch head query size"]
    k: Float[Tensor, "batch head key size"]
    mask: Mask | None = None
    query_grid: TokenGrid | None = None
    key_grid: TokenGrid | None = None
    partition: Partition | None = None
    decode_step: DecodeStep | None = None
    values: ValueRecord | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        batch, heads, queries, _ = self.q.shape
        return batch, heads, queries, self.k.shape[2]


@dataclass(frozen=True, slots=True, repr=False)
class SoftmaxRecord(QueryKeyRecord):
    """Of softmax attention, with what was added to its scores."""

    bias: Bias | None = None

    def weights(
        self, rows: slice = ALL, queries: slice = ALL
    ) -> Float[Tensor, "row head query key"]:
        """Compute the map of some batch rows and queries in fp32."""
        mask, bias = (take(each, rows, queries) for each in (self.mask, self.bias))
        bias = None if bias is None else bias.float()
        q, k = self.q[rows, :, queries].float(), self.k[rows].float()
        return attention_weights(q, k, mask, bias)


@dataclass(frozen=True, slots=True, repr=False)
class EditedRecord(QueryKeyRecord):
    """Of an attention whose map an edit replaced."""

    pattern: Float[Tensor, "batch head query key"] = field(kw_only=True)

    def weights(
        self, rows: slice = ALL, queries: slice = ALL
    ) -> Float[Tensor, "row head query key"]:
        """Return the map of some batch rows and queries in fp32."""
        return self.pattern[rows, :, queries].float()
