"""FFN(x) = act(x W1 + b1) W2 + b2, the same at each position (Vaswani et al. 2017, equation 2).

And its gated form, which has no biases unless they are asked for.
"""

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.linear import Linear


class QuickGELU(nn.Module):
    """x * sigmoid(1.702 x), an approximation of GELU (Hendrycks & Gimpel 2016, section 2)."""

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Apply it to each value."""
        return x * (1.702 * x).sigmoid()


class FeedForward(nn.Module):
    """Two linear layers with a non-linearity between: ReLU in the Transformer, GELU in ViT."""

    def __init__(
        self, dim: int, ffn_dim: int, activation: nn.Module, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.expand = Linear(dim, ffn_dim)
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.contract = Linear(ffn_dim, dim)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Expand, apply the activation, contract."""
        return self.contract(self.dropout(self.activation(self.expand(x))))


class GatedFeedForward(nn.Module):
    """FFN(x) = (act(x W) * x V) W2: a gated linear unit, SwiGLU with SiLU (Shazeer 2020, eq. 6).

    Three matrices without biases, as in that paper: with the same `ffn_dim`, half as many
    parameters again; with two thirds of it, as many. DINOv2's has biases.
    """

    def __init__(
        self,
        dim: int,
        ffn_dim: int,
        activation: nn.Module,
        *,
        dropout: float = 0.0,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.gate = Linear(dim, ffn_dim, bias=bias)
        self.expand = Linear(dim, ffn_dim, bias=bias)
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.contract = Linear(ffn_dim, dim, bias=bias)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Expand twice, let one gate the other, contract."""
        return self.contract(self.dropout(self.activation(self.gate(x)) * self.expand(x)))
