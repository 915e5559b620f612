"""Residual connection and layer normalisation around a sub-layer: two parts, not one with a switch.

Both keep an identity path for the gradient; they differ in whether the norm lies on it. A block
writes one line a sub-layer: `x = residual.add(x, sublayer(residual.enter(x)))`.
"""

from torch import nn

from manyheads.nn.editing.seam import is_open, layer_id_of, visit
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.layer_scale import LayerScale
from manyheads.nn.layers.stochastic_depth import StochasticDepth
from manyheads.nn.shapes import Tokens


class _Residual(nn.Module):
    """The parts of both."""

    def __init__(
        self,
        dim: int,
        *,
        dropout: float = 0.0,
        eps: float = 1e-5,
        layer_scale: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.dropout = branch_end(dim, dropout, layer_scale, drop_path)
        self.part = ""
        self.owner: tuple[nn.Module, ...] = ()

    def named(self, part: str, attention: nn.Module) -> None:
        """Name the site for edits: a part of the block that has this attention."""
        self.part, self.owner = part, (attention,)  # a tuple, or it would be registered twice

    def branch(self, y: Tokens) -> Tokens:
        """End the branch: this is what is added to the residual stream."""
        y = self.dropout(y)
        if self.owner and is_open():
            y = visit(layer_id_of(self.owner[0]), f"added {self.part}", y)
        return y


class PostNorm(_Residual):
    """LayerNorm(x + Sublayer(x)): the 2017 Transformer (section 3.1)."""

    def enter(self, x: Tokens) -> Tokens:
        """Return x: the sub-layer reads it as it is."""
        return x

    def add(self, x: Tokens, y: Tokens) -> Tokens:
        """Add the sub-layer's output y to x, then normalise."""
        return self.norm(x + self.branch(y))


class PreNorm(_Residual):
    """x + Sublayer(LayerNorm(x)): ViT, equations 2 and 3; a final norm follows the stack."""

    def enter(self, x: Tokens) -> Tokens:
        """Normalise what the sub-layer reads."""
        return self.norm(x)

    def add(self, x: Tokens, y: Tokens) -> Tokens:
        """Add the sub-layer's output y to x."""
        return x + self.branch(y)


def branch_end(dim: int, dropout: float, layer_scale: float, drop_path: float) -> nn.Module:
    """Build the end of a residual branch: dropout, then the parts that are not 0.

    Args:
        dim: width of the branch.
        dropout: share of the values that are dropped in training.
        layer_scale: the gain of every channel at first.
        drop_path: share of the images that go without the branch in training.
    """
    parts: list[nn.Module] = [Dropout(dropout)]
    if layer_scale:
        parts.append(LayerScale(dim, layer_scale))
    if drop_path:
        parts.append(StochasticDepth(drop_path))
    return nn.Sequential(*parts) if len(parts) > 1 else parts[0]
