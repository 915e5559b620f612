"""Residual connection and layer normalisation around a sub-layer: two parts, not one with a switch.

Both keep an identity path for the gradient; they differ in whether the norm lies on it.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.dropout import Dropout

Sublayer = Callable[[Tensor], Tensor]


class PostNorm(nn.Module):
    """LayerNorm(x + Sublayer(x)): the 2017 Transformer (section 3.1)."""

    def __init__(self, dim: int, *, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch token dim"], sublayer: Sublayer
    ) -> Float[Tensor, "batch token dim"]:
        """Add, then normalise."""
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(nn.Module):
    """x + Sublayer(LayerNorm(x)): ViT, equations 2 and 3; a final norm follows the stack."""

    def __init__(self, dim: int, *, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch token dim"], sublayer: Sublayer
    ) -> Float[Tensor, "batch token dim"]:
        """Normalise, then add."""
        return x + self.dropout(sublayer(self.norm(x)))
