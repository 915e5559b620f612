"""How far the attentions of two models with one architecture are apart on the same input."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.lens.trace.attention_reader import Attention, attentions
from manyheads.nn.recording.trace import Trace

# Of 100 untrained heads, 95 are at most this many times as far from another untrained model as the
# heads of their layer are on average: docs/decisions/untrained.md.
NOISE = 1.3


@dataclass(frozen=True, slots=True)
class MapDistance:
    """How far each head of a layer is from the same head of an untrained model."""

    heads: list[float]
    noise: float  # up to which two untrained models differ from each other

    @property
    def same(self) -> list[int]:
        """The heads, from 1, that do not differ."""
        return [head for head, distance in enumerate(self.heads, 1) if distance <= self.noise]


def row_distance(found: Attention, other: Attention) -> Float[Tensor, " head"]:
    """Compute the total variation distance between two attentions, a mean over queries.

    Of one query it is half the sum over keys of |p - q|: 0 where both are equal, 1 where no key has
    weight in both.
    """
    total, rows = torch.zeros(found.heads), 0
    for one, another in zip(found.pieces(), other.pieces(), strict=True):
        total += 0.5 * (one.weights - another.weights).abs().sum(dim=(1, 2))
        rows += len(one.queries)
    return total / max(rows, 1)


def untrained_distances(trained: Trace, untrained: Trace, another: Trace) -> dict[str, MapDistance]:
    """Compare a model with an untrained one, and this with another one, layer by layer.

    The traces are of one input; the result is by the name of the attention's layer.
    """
    found = zip(*map(attentions, (trained, untrained, another)), strict=True)
    return {
        str(fresh.layer_id): MapDistance(
            [round(each, 4) for each in row_distance(own, fresh).tolist()],
            round(NOISE * float(row_distance(fresh, other).mean()), 4),
        )
        for own, fresh, other in found
    }
