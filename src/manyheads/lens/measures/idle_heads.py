"""Idle and duplicate heads, measured over several examples: what does not depend on the input.

Many heads can be pruned without loss: Michel et al. 2019, "Are Sixteen Heads Really Better than
One?". Heads attend to one token when they have nothing to attend to: Clark et al. 2019, "What Does
BERT Look At?", section 3.2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.lens.trace.attention_reader import PIECE
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.recording.attention_record import ALL, AttentionRecord, take
from manyheads.nn.recording.trace import LayerId, Trace

# Of the largest entropy: the head reads the mean of everything. Shipped models: at most 0.90.
UNIFORM = 0.99
# Of the attention: whatever comes in, the head reads the same place. Shipped: at most 0.72.
ONE_TOKEN = 0.95
SILENT = 0.01  # of what the median head of the layer can write. Shipped: at least 0.40
# Mean total variation of two maps. Copies have 0; the closest heads of shipped models 0.30.
ALIKE = 0.02


@dataclass(frozen=True, slots=True)
class Head:
    """Statistics of one head, averaged over all queries with at least two allowed keys."""

    layer_id: LayerId
    number: int  # from 1
    entropy: float  # of its attention, as a share of the maximum: 1 is uniform
    favourite: float  # the attention weight of the position with the largest mean weight
    place: str  # that position: "the first token", "token 3", "the last token"
    writes: float  # the norm of its OV matrix, relative to the median head of its layer

    def __str__(self) -> str:
        """Return the name for legends."""
        return f"{self.layer_id}, head {self.number}"


@dataclass(frozen=True, slots=True)
class DuplicateHeads:
    """Two heads of one attention, and the distance of their maps."""

    layer_id: LayerId
    numbers: tuple[int, int]  # from 1
    distance: float  # half the sum of differences (total variation), mean over queries: 0..1

    def __str__(self) -> str:
        """Return the names for legends."""
        return f"{self.layer_id}, heads {self.numbers[0]} and {self.numbers[1]}"


class _Sums:
    """Sums over the queries of one attention with at least two allowed keys."""

    def __init__(self, heads: int) -> None:
        self.queries = 0
        self.entropy = torch.zeros(heads)
        self.apart = torch.zeros(heads, heads)
        self.from_first = self.from_last = torch.zeros(heads, 0)  # (head, position)

    def add(self, weights: Tensor, choices: Tensor) -> None:
        """Add maps (query, head, key); choices (query,) are the numbers of allowed keys."""
        self.queries += len(weights)
        surprise = -torch.special.xlogy(weights, weights).sum(dim=2)  # (query, head)
        self.entropy += (surprise / choices.log()[:, None]).sum(dim=0)
        for head in range(weights.shape[1]):
            self.apart[head] += (weights - weights[:, head, None]).abs().sum(dim=(0, 2)) / 2
        summed = weights.sum(dim=0)
        self.from_first = _sum(self.from_first, summed)
        # Sentences differ in length: their last tokens have equal positions counted from the end.
        self.from_last = _sum(self.from_last, summed.flip(1))


class HeadStatistics:
    """Collects the traces of several forward passes; returns statistics of all heads."""

    def __init__(self) -> None:
        self._sums: dict[LayerId, _Sums] = {}

    def add(self, trace: Trace) -> None:
        """Add a trace of examples without padding; the padding of windows is left out."""
        for record in trace:
            if isinstance(record, AttentionRecord):
                batch, heads, queries, keys = record.shape
                step = max(PIECE // (batch * heads * keys), 1)  # of a large map a part at a time
                for first in range(0, queries, step):
                    self._add(record, slice(first, first + step))

    def _add(self, record: AttentionRecord, queries: slice) -> None:
        weights = record.weights(ALL, queries).cpu()
        mask = take(record.mask, ALL, queries)
        allowed = torch.ones(1, dtype=torch.bool) if mask is None else mask.cpu()
        choices = allowed.expand_as(weights).sum(dim=3)[:, 0]  # batch query
        counted = choices >= 2
        if record.partition is not None:  # padding is not a query
            inside = record.partition.token_index()[:, queries] >= 0
            counted = counted & inside.repeat(len(counted) // len(inside), 1)
        if counted.any():
            chosen = weights.transpose(1, 2)[counted]  # query head key
            sums = self._sums.setdefault(record.layer_id, _Sums(chosen.shape[1]))
            sums.add(chosen, choices[counted].float())

    def heads(self, model: nn.Module) -> list[Head]:
        """Return the statistics of every recorded head, in the order of the layers."""
        writes = dict(write_shares(model))
        return [
            Head(
                layer_id,
                head + 1,
                float(sums.entropy[head]) / sums.queries,
                *_favourite(sums, head),
                float(writes[layer_id][head]) if layer_id in writes else math.nan,
            )
            for layer_id, sums in self._sums.items()
            for head in range(len(sums.entropy))
        ]

    def duplicates(self) -> Iterator[DuplicateHeads]:
        """Yield all pairs of heads of one attention with the distance of their maps."""
        for layer_id, sums in self._sums.items():
            distance = (sums.apart / sums.queries).tolist()
            for one, row in enumerate(distance):
                for other in range(one + 1, len(distance)):
                    yield DuplicateHeads(layer_id, (one + 1, other + 1), row[other])


def judged(head: Head) -> str:
    """Explain why a head does nothing that depends on its input; "" if it does."""
    return f"writes nothing: {written_share(head)}" if head.writes <= SILENT else resting(head)


def written_share(head: Head) -> str:
    """Say how much a head writes, compared with the median head of its layer."""
    return f"{100 * head.writes:.2g}% of what the median head of its layer can"


def resting(head: Head) -> str:
    """Explain why a head's attention does not depend on its input; "" if it does."""
    if head.entropy >= UNIFORM:
        return f"uniform, {100 * head.entropy:.1f}% of the largest entropy"
    if head.favourite >= ONE_TOKEN:
        return f"{100 * head.favourite:.0f}% of its attention on {head.place}"
    return ""


def write_shares(model: nn.Module) -> Iterator[tuple[LayerId, Tensor]]:
    """Yield the norm of each head's OV matrix relative to the median, for each attention.

    Head h adds a weighted mean of W_o^h W_v^h x to a token: the norm of that matrix bounds it,
    whatever the attention (Elhage et al. 2021, the "OV circuit").
    """
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            values = part.qkv.weight[2 * part.out.in_features :].detach().float().cpu()
            out = part.out.weight.detach().float().cpu()
            values = values.unflatten(0, (part.heads, -1))  # head size dim
            out = out.unflatten(1, (part.heads, -1)).transpose(0, 1)  # head output size
            norms = (out @ values).flatten(1).norm(dim=1)
            yield part.layer_id, norms / norms.median().clamp_min(torch.finfo(norms.dtype).tiny)


def _favourite(sums: _Sums, head: int) -> tuple[float, str]:
    first, last = sums.from_first[head] / sums.queries, sums.from_last[head] / sums.queries
    if first.max() >= last.max():
        index = int(first.argmax())
        return float(first.max()), f"token {index + 1}" if index else "the first token"
    index = int(last.argmax())
    return float(last.max()), f"token {index + 1} from the end" if index else "the last token"


def _sum(one: Tensor, other: Tensor) -> Tensor:
    """Add tables (head, position); positions that one does not have are zeros."""
    missing = other.shape[1] - one.shape[1]
    return F.pad(one, (0, max(missing, 0))) + F.pad(other, (0, max(-missing, 0)))
