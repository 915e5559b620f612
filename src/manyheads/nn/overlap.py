"""Tokens from overlapping patches: a convolution whose stride is less than its size."""

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.grid import to_tokens
from manyheads.nn.places import see_through


class OverlappingPatches(nn.Module):
    """Convolve, and normalise each token (Wu et al. 2021, section 3.1, equation 1)."""

    def __init__(
        self, channels: int, dim: int, *, kernel: int, stride: int, padding: int, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, dim, kernel, stride=stride, padding=padding)
        self.norm = nn.LayerNorm(dim, eps=eps)

    def forward(
        self, x: Float[Tensor, "batch channel height width"]
    ) -> tuple[Float[Tensor, "batch token dim"], tuple[int, int]]:
        """Give the tokens, and the grid they stand on."""
        see_through([self.project])
        tokens, grid = to_tokens(self.project(x))
        return self.norm(tokens), grid
