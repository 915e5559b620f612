"""One row of one head, step by step: q.k, scale, bias, mask, softmax, values.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1, equation (1).
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.rounding import significant
from manyheads.lens.trace.attention_reader import Attention
from manyheads.nn.attention.softmax import SoftmaxRecord, normalise
from manyheads.nn.recording.attention_record import take
from manyheads.nn.recording.trace import Trace

KEYS = 4096  # of a row


@dataclass(frozen=True)
class HeadSteps:
    """How one query of one head got its weights and its output; lists have a number a key."""

    site: str  # "decoder layer 2 cross"
    head: int  # from 1
    row: int  # of the query, from 1
    size: int  # of queries and keys: scores are divided by its root
    keys: list[int]  # which tokens are compared, from 0: of a window only its own
    products: list[float]  # q.k
    scores: list[float]  # divided by the root of the size, with the bias
    bias: list[float] | None  # what is added, such as relative positions
    allowed: list[bool] | None  # False: hidden by the mask; None: there is no mask
    weights: list[float]  # softmax of the scores; sums to 1
    lengths: list[float]  # of the values
    shares: list[float]  # of each weighted value in the output, along it; sums to 1
    query: list[float]
    strongest: list[float]  # the key with the largest weight
    output: list[float]  # the values mixed by the weights

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types."""
        return asdict(self)


def head_steps(trace: Trace, site: str, head: int, row: int) -> HeadSteps:
    """Compute the steps of one query in one head from a trace that was recorded with gradients.

    Args:
        trace: of one pass; see `record(gradients=True)`.
        site: the layer, such as "decoder layer 2 cross".
        head: from 1.
        row: the query, from 1.

    Raises:
        UsageError: the trace has no such layer, head or query, or its scores are no products of
            queries and keys.
    """
    found = [each for each in trace if str(each.layer_id) == site]
    record = found[0] if found else None
    if len(found) != 1 or not isinstance(record, SoftmaxRecord) or record.values is None:
        known = [str(each.layer_id) for each in trace if isinstance(each, SoftmaxRecord)]
        names = ", ".join(dict.fromkeys(known)) or "none"
        raise UsageError(
            f"There is no softmax attention over products of queries and keys at {site[:80]!r}. "
            f"Layers that have one: {names}."
        )
    attention = Attention(record)
    if not 1 <= head <= attention.heads:
        raise UsageError(f"The head is {head}: {site} has heads 1 to {attention.heads}.")
    if not 1 <= row <= attention.shape[0]:
        raise UsageError(f"The row is {row}: {site} has rows 1 to {attention.shape[0]}.")
    cut = next(each for each in attention.cuts() if bool((each.queries == row - 1).any()))
    if len(cut.keys) > KEYS:
        raise UsageError(
            f"A row of {len(cut.keys):,} keys is too long: at most {KEYS:,} are shown."
        )
    place = int(cut.rows[(cut.queries == row - 1).nonzero()[0, 0]])

    def row_of(x: Tensor | None) -> Tensor | None:
        """Take this query in this head of what broadcasts to (batch, head, query, key)."""
        own = take(x, slice(cut.row, cut.row + 1), slice(place, place + 1))
        if own is None:
            return None
        own = own[0, head - 1 if own.shape[1] > 1 else 0, 0]
        return own.expand(record.shape[3])[cut.columns].cpu()

    q = record.q[cut.row, head - 1, place].float().cpu()
    k = record.k[cut.row, head - 1][cut.columns].float().cpu()
    v = record.values.v[cut.row, head - 1][cut.columns].float().cpu()
    bias, mask = row_of(record.bias), row_of(record.mask)
    products = k @ q
    scores = products / math.sqrt(len(q))
    scores = scores if bias is None else scores + bias.float()
    weights = normalise(scores[None], None if mask is None else mask[None])[0]
    parts = weights[:, None] * v
    output = parts.sum(dim=0)
    shares = parts @ output / output.square().sum().clamp_min(1e-30)
    added = None if bias is None else significant(bias.float())
    allowed = None if mask is None else mask.tolist()
    begin = cut.keys.tolist(), significant(products), significant(scores), added, allowed
    strongest = k[int(weights.argmax())]
    end = map(significant, (weights, v.norm(dim=-1), shares, q, strongest, output))
    return HeadSteps(site, head, row, len(q), *begin, *end)
