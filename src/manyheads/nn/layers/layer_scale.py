"""LayerScale: each channel of a residual branch has a gain that begins near zero."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerScale(nn.Module):
    """diag(lambda_1, ..., lambda_d) x branch (Touvron et al. 2021, "Going deeper", equation 4)."""

    def __init__(self, dim: int, initial: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((dim,), initial))

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Scale the channels."""
        return x * self.gain
