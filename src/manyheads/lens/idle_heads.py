"""Heads that do nothing, and heads that do the same: measured over several examples.

That many heads can go without loss: Michel et al. 2019, "Are Sixteen Heads Really Better than
One?". That heads rest on one token when they have nothing to read: Clark et al. 2019, "What Does
BERT Look At?", section 3.2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from manyheads.lens.reading import PIECE
from manyheads.nn.attention import AttentionRecord, MultiHeadAttention
from manyheads.nn.trace import Site, Trace


@dataclass(frozen=True, slots=True)
class Head:
    """What one head did, on average over all queries that had a choice."""

    site: Site
    number: int  # from 1
    entropy: float  # of its attention, as a share of the largest possible: 1 is uniform
    favourite: float  # the share of its attention that goes to the position it likes best
    place: str  # of that position: "first token", "token 3", "last token"
    writes: float  # the norm of what it can write, as a share of the median head's of its layer

    def __str__(self) -> str:
        """Name the head as legends do."""
        return f"{self.site}, head {self.number}"


@dataclass(frozen=True, slots=True)
class Twins:
    """Two heads of one attention, and how far their maps are from each other."""

    site: Site
    numbers: tuple[int, int]  # from 1
    distance: float  # half the sum of differences (total variation), mean over queries: 0..1

    def __str__(self) -> str:
        """Name both as legends do."""
        return f"{self.site}, heads {self.numbers[0]} and {self.numbers[1]}"


@dataclass
class _Sums:
    """Sums over the queries of one attention that had at least two keys to choose from."""

    queries: int = 0
    entropy: Tensor = field(default_factory=lambda: torch.zeros(0))  # (head,)
    apart: Tensor = field(default_factory=lambda: torch.zeros(0))  # (head, head)
    from_first: Tensor = field(default_factory=lambda: torch.zeros(0, 0))  # (head, position)
    from_last: Tensor = field(default_factory=lambda: torch.zeros(0, 0))

    def add(self, weights: Tensor, choices: Tensor) -> None:
        """Add maps (query, head, key) of queries with so many choices (query,)."""
        heads, keys = weights.shape[1:]
        if not self.queries:
            self.entropy, self.apart = torch.zeros(heads), torch.zeros(heads, heads)
            self.from_first = self.from_last = torch.zeros(heads, 0)
        self.queries += len(weights)
        surprise = -torch.special.xlogy(weights, weights).sum(dim=2)  # (query, head)
        self.entropy += (surprise / choices.log()[:, None]).sum(dim=0)
        for head in range(heads):
            self.apart[head] += (weights - weights[:, head, None]).abs().sum(dim=(0, 2)) / 2
        summed = weights.sum(dim=0)
        self.from_first = _grown(self.from_first, keys) + _grown(summed, self.from_first.shape[1])
        # Sentences differ in length: their last tokens are one position only counted backwards.
        backwards = summed.flip(1)
        self.from_last = _grown(self.from_last, keys) + _grown(backwards, self.from_last.shape[1])


class HeadWatch:
    """Takes the traces of several passes through a model, then says what its heads did."""

    def __init__(self) -> None:
        self._sums: dict[Site, _Sums] = {}

    def add(self, trace: Trace) -> None:
        """Take a trace of examples without padding; that of windows asks for nothing."""
        for record in trace:
            if isinstance(record, AttentionRecord):
                for part, real in _parts(record):
                    self._add(part, real)

    def _add(self, record: AttentionRecord, real: Bool[Tensor, "batch query"]) -> None:
        weights = record.weights.cpu()
        allowed = torch.ones(1, dtype=torch.bool) if record.mask is None else record.mask
        choices = allowed.cpu().expand_as(weights).sum(dim=3)[:, 0]  # batch query
        asked = (choices >= 2) & real
        if asked.any():
            chosen = weights.transpose(1, 2)[asked]  # query head key
            self._sums.setdefault(record.site, _Sums()).add(chosen, choices[asked].float())

    def heads(self, model: nn.Module) -> list[Head]:
        """Describe every head that was seen, in the order of the sites."""
        writes = dict(write_shares(model))
        return [
            Head(
                site,
                head + 1,
                float(sums.entropy[head]) / sums.queries,
                *_favourite(sums, head),
                float(writes[site][head]) if site in writes else math.nan,
            )
            for site, sums in self._sums.items()
            for head in range(len(sums.entropy))
        ]

    def twins(self) -> Iterator[Twins]:
        """Yield all pairs of heads of one attention with the distance of their maps."""
        for site, sums in self._sums.items():
            distance = sums.apart / sums.queries
            for one in range(len(distance)):
                for other in range(one + 1, len(distance)):
                    yield Twins(site, (one + 1, other + 1), float(distance[one, other]))


def write_shares(model: nn.Module) -> Iterator[tuple[Site, Tensor]]:
    """Say for each attention how much its heads can write, against their median.

    What head h adds to a token is a weighted mean of W_o^h W_v^h x: the norm of that product
    bounds it, wherever the head looks (Elhage et al. 2021, the "OV circuit").
    """
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            inner = part.out.in_features
            values = part.qkv.weight[2 * inner :].detach().float().cpu()
            out = part.out.weight.detach().float().cpu()
            values = values.unflatten(0, (part.heads, -1))  # head size dim
            out = out.unflatten(1, (part.heads, -1)).transpose(0, 1)  # head output size
            norms = (out @ values).flatten(1).norm(dim=1)
            yield part.site, norms / norms.median().clamp_min(torch.finfo(norms.dtype).tiny)


def _parts(
    record: AttentionRecord,
) -> Iterator[tuple[AttentionRecord, Bool[Tensor, "batch query"]]]:
    """Cut a record whose whole map is too large; say which queries are tokens, and not padding."""
    batch, heads, queries, _ = record.q.shape
    real = torch.ones(batch, queries, dtype=torch.bool)
    if record.windows is not None:
        inside = record.windows.places() >= 0
        real = inside.repeat(batch // len(inside), 1)
    step = max(PIECE // (batch * heads * record.k.shape[2]), 1)
    if step >= queries:
        yield record, real
        return
    for first in range(0, queries, step):
        rows = slice(first, first + step)
        part = replace(
            record,
            q=record.q[:, :, rows],
            mask=_cut(record.mask, rows),
            bias=_cut(record.bias, rows),
        )
        yield part, real[:, rows]


def _cut(x: Tensor | None, rows: slice) -> Tensor | None:
    """Take some queries of what broadcasts to (batch, head, query, key)."""
    return x if x is None or x.ndim < 2 or x.shape[-2] == 1 else x[..., rows, :]


def _favourite(sums: _Sums, head: int) -> tuple[float, str]:
    first, last = sums.from_first[head] / sums.queries, sums.from_last[head] / sums.queries
    if first.max() >= last.max():
        place = int(first.argmax())
        return float(first.max()), f"token {place + 1}" if place else "the first token"
    place = int(last.argmax())
    return float(last.max()), f"token {place + 1} from the end" if place else "the last token"


def _grown(sums: Tensor, length: int) -> Tensor:
    """Fill up positions with zeros."""
    missing = length - sums.shape[1]
    return torch.cat((sums, torch.zeros(len(sums), missing)), dim=1) if missing > 0 else sums
