"""Feature maps on the way through an image model, for Grad-CAM.

Modules report what they read or return: blocks their tokens, convolutions their map. They are kept
only by a recorder of gradients, with the grid from `tracking.py`.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId, active
from manyheads.nn.shapes import FeatureMap, Tokens

TOKENS, MAP = "tokens", "map"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureRecord:
    """The vectors at one point of a model, with their graph; the layer counts such points."""

    layer_id: LayerId
    x: Float[Tensor, "..."]  # (batch token dim), or (batch dim row column)
    grid: TokenGrid

    def to_map(self, x: Float[Tensor, "..."]) -> FeatureMap:
        """Arrange a tensor of the same shape on the grid; extra tokens are left out."""
        if self.layer_id.kind == MAP:
            return x
        return x[:, len(self.grid.extra) :].transpose(1, 2).unflatten(2, self.grid.shape)


def record_features(x: Tokens | FeatureMap) -> None:
    """Record the tokens that enter a block, or the output of convolutions."""
    trace = active()
    if trace is None or not trace.gradients or trace.current_grid is None:
        return
    number = sum(isinstance(each, FeatureRecord) for each in trace.records)
    kind = MAP if x.ndim == 4 else TOKENS
    trace.add(FeatureRecord(LayerId("features", number, kind), x, trace.current_grid))
