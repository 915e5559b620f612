"""What an attention has mixed: enough for the gradient of a score with respect to its map.

The fused kernel never forms the map A. But its answer is O = A V, so that dL/dA = dL/dO V^T: the
values are at hand, and dL/dO is what autograd computes for any tensor on the way to the score.
Without dropout, that is, in evaluation.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.nn.trace import active


class Flow(NamedTuple):
    """Values and answers of one attention; an attention with a single head may leave it out."""

    v: Float[Tensor, "batch *head key value"]
    # With their graph; several where queries came one after another.
    outputs: tuple[Float[Tensor, "batch *head query value"], ...]

    def of_outputs(
        self, gradients: Sequence[Float[Tensor, "batch *head query value"]]
    ) -> Float[Tensor, "batch some_heads all_queries value"]:
        """Join the gradients with respect to each of the outputs, heads written out."""
        joined = torch.cat(tuple(gradients), dim=-2)
        return joined if joined.ndim == 4 else joined[:, None]

    @property
    def values(self) -> Float[Tensor, "batch some_heads key value"]:
        """The values, heads written out."""
        return self.v if self.v.ndim == 4 else self.v[:, None]


def keep_flow(
    v: Float[Tensor, "batch *head key value"],
    outputs: Sequence[Float[Tensor, "batch *head query value"]],
) -> Flow | None:
    """Keep what an attention has mixed, if an open recorder asks for gradients."""
    trace = active()
    if trace is None or not trace.gradients:
        return None
    return Flow(v.detach(), tuple(outputs))
