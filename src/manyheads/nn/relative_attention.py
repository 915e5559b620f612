"""Self-attention over a whole grid with a bias for each distance (Dai et al. 2021, equation 3)."""

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.attention import MultiHeadAttention
from manyheads.nn.relative import RelativeBias


class RelativeAttention(nn.Module):
    """The one attention plus a relative bias; at another image size the bias is interpolated."""

    def __init__(self, attention: MultiHeadAttention, grid: tuple[int, int]) -> None:
        super().__init__()
        self.attention = attention
        self.bias = RelativeBias(grid, attention.heads)

    def forward(
        self, x: Float[Tensor, "batch token dim"], grid: tuple[int, int]
    ) -> Float[Tensor, "batch token output"]:
        """Mix all tokens."""
        return self.attention(x, bias=self.bias(grid))
