"""From a sequence of tokens to one vector: a learned class token, or the mean."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class ClassToken(nn.Module):
    """A learned token in front, whose final vector stands for the image (ViT, equations 1, 4)."""

    extra = 1

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.empty(1, 1, dim))
        nn.init.trunc_normal_(self.token, std=0.02)

    def prepend(self, x: Float[Tensor, "batch patch dim"]) -> Float[Tensor, "batch token dim"]:
        """Put the class token before the patches."""
        return torch.cat((self.token.expand(len(x), -1, -1).to(x.dtype), x), dim=1)

    def forward(self, x: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch dim"]:
        """Read the class token's final vector."""
        return x[:, 0]


class MeanPool(nn.Module):
    """The mean of all patch vectors; no extra token."""

    extra = 0

    def __init__(self, dim: int) -> None:
        super().__init__()

    def prepend(self, x: Float[Tensor, "batch patch dim"]) -> Float[Tensor, "batch token dim"]:
        """Add nothing."""
        return x

    def forward(self, x: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch dim"]:
        """Average over the tokens."""
        return x.mean(dim=1)


class PatchMeanPool(ClassToken):
    """The mean of the patch vectors beside a class token, as weights from BEiT and MAE are used."""

    def forward(self, x: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch dim"]:
        """Average over the tokens behind the class token."""
        return x[:, 1:].mean(dim=1)
