"""A block whose attention knows rows and columns: windows, convolutions."""

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.block import AttentionBlock, ResidualFactory
from manyheads.nn.features import keep_tokens


class GridBlock(AttentionBlock):
    """Attention on a grid, then feed-forward, each inside a residual.

    The attention is called with the tokens and their grid.
    """

    def __init__(
        self, attention: nn.Module, feedforward: nn.Module, residual: ResidualFactory
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward
        self.around_attention = residual()
        self.around_feedforward = residual()

    def forward(
        self, x: Float[Tensor, "batch token dim"], grid: tuple[int, int]
    ) -> Float[Tensor, "batch token dim"]:
        """Mix tokens, then transform each."""
        keep_tokens(x)
        x = self.around_attention(x, lambda y: self.attention(y, grid))
        return self.around_feedforward(x, self.feedforward)
