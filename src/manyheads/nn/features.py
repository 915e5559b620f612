"""Features of a picture on their way: what a recorder of gradients keeps for Grad-CAM.

Parts that a model is a row of say what they read or answer: blocks their tokens, convolutions their
map. Where the vectors stand is known from `places.py`. Without such a recorder nothing happens.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from manyheads.nn.grid import to_map
from manyheads.nn.places import Places
from manyheads.nn.trace import Site, active

TOKENS, MAP = "tokens", "map"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureRecord:
    """The vectors at one point of a model, with their graph; its site counts such points."""

    site: Site
    x: Float[Tensor, "..."]  # (batch token dim), or (batch dim row column)
    places: Places

    def laid(self, x: Float[Tensor, "..."]) -> Float[Tensor, "batch dim row column"]:
        """Lay what has the shape of the vectors on the grid; tokens that stand nowhere go."""
        if self.site.kind == MAP:
            return x
        return to_map(x[:, len(self.places.extra) :], self.places.grid)


def keep_tokens(x: Float[Tensor, "batch token dim"]) -> None:
    """Keep the tokens that enter a block."""
    _keep(x, TOKENS)


def keep_map(x: Float[Tensor, "batch dim row column"]) -> None:
    """Keep the map that convolutions answer."""
    _keep(x, MAP)


def _keep(x: Tensor, kind: str) -> None:
    trace = active()
    if trace is None or not trace.gradients or trace.here is None:
        return
    number = sum(isinstance(each, FeatureRecord) for each in trace.records)
    trace.add(FeatureRecord(Site("features", number, kind), x, trace.here))
