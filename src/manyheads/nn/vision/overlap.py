"""Tokens from overlapping patches: a convolution whose stride is less than its size."""

from torch import nn

from manyheads.nn.layers.grid import to_tokens
from manyheads.nn.recording.tracking import track_modules
from manyheads.nn.shapes import Grid, Images, Tokens, check_axes


class OverlappingPatches(nn.Module):
    """Convolve, and normalise each token (Wu et al. 2021, section 3.1, equation 1)."""

    def __init__(
        self, channels: int, dim: int, *, kernel: int, stride: int, padding: int, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, dim, kernel, stride=stride, padding=padding)
        self.norm = nn.LayerNorm(dim, eps=eps)

    def forward(self, x: Images) -> tuple[Tokens, Grid]:
        """Give the tokens, and the grid they stand on."""
        check_axes(x, "batch channel height width")
        track_modules([self.project])
        tokens, grid = to_tokens(self.project(x))
        return self.norm(tokens), grid
