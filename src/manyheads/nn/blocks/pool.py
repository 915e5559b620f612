"""From a sequence of tokens to one vector: extra tokens, the mean, or attention over the tokens."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.attention.attention import MultiHeadAttention, attend
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.head import ClassifierHeadPart
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import current_grid, prepend_tokens
from manyheads.nn.shapes import Tokens, check_axes


class ClassToken(nn.Module):
    """A learned token in front, whose final vector stands for the image (ViT, equations 1, 4)."""

    extra = 1
    names: tuple[str, ...] = ("class token",)

    def __init__(self, dim: int, heads: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.empty(1, self.extra, dim))
        nn.init.trunc_normal_(self.token, std=0.02)

    def prepend(self, x: Float[Tensor, "batch patch dim"]) -> Tokens:
        """Put the class token before the patches."""
        prepend_tokens(self.names)
        return torch.cat((self.token.expand(x.shape[0], -1, -1).to(x.dtype), x), dim=1)

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Read the class token's final vector."""
        check_axes(x, "batch token dim")
        return x[:, 0]


class TwoTokens(ClassToken):
    """A class token and a distillation token, which learns from a teacher (DeiT, section 4).

    The vector of the image is their mean; `models/deit.py` reads each through a head of its own.
    """

    extra = 2
    names = ("class token", "distillation token")

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Average the final vectors of both."""
        check_axes(x, "batch token dim")
        return x[:, :2].mean(dim=1)


class MeanPool(nn.Module):
    """The mean of all patch vectors; no extra token."""

    extra = 0

    def __init__(self, dim: int, heads: int = 1) -> None:
        super().__init__()

    def prepend(self, x: Float[Tensor, "batch patch dim"]) -> Tokens:
        """Add nothing."""
        return x

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Average over the tokens."""
        check_axes(x, "batch token dim")
        return x.mean(dim=1)


class SequencePool(MeanPool, ClassifierHeadPart):
    """A mean weighted by softmax(g(x)) over the tokens, with g linear (CCT, equations 4 to 6).

    That is attention with one learned query over the tokens themselves: its map is recorded too.
    The bias of g is left out, because softmax is blind to it.
    """

    def __init__(self, dim: int, heads: int = 1) -> None:
        super().__init__(dim)
        self.query = nn.Parameter(torch.empty(dim))
        nn.init.trunc_normal_(self.query, std=0.02)
        self.layer_id = LayerId("pool", 0, "sequence")

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Weigh the tokens and add them."""
        check_axes(x, "batch token dim")
        # `attend` divides scores by the root of the width, which g does not.
        query = (self.query * math.sqrt(x.shape[2])).to(x.dtype)
        tokens = x.unsqueeze(1)  # batch token dim -> batch head token dim
        context = AttentionContext(self.layer_id, key_grid=current_grid())
        pooled = attend(query.expand(x.shape[0], 1, 1, -1), tokens, tokens, context=context)
        return pooled.flatten(1)


class AttentionPool(MeanPool, ClassifierHeadPart):
    """A learned query attends to the tokens with several heads (Zhai et al. 2022, section 3.2).

    Behind it a feed-forward layer of its own: "multihead attention pooling" (Lee et al. 2019).
    """

    def __init__(self, dim: int, heads: int = 1) -> None:
        super().__init__(dim)
        self.query = nn.Parameter(torch.empty(1, 1, dim))
        nn.init.trunc_normal_(self.query, std=0.02)
        self.attention = MultiHeadAttention(dim, heads)
        self.attention.layer_id = LayerId("pool", 0, "attention")
        self.norm = nn.LayerNorm(dim)
        self.feedforward = FeedForward(dim, 4 * dim, nn.GELU())

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Ask the tokens once."""
        check_axes(x, "batch token dim")
        query = self.query.expand(x.shape[0], -1, -1).to(x.dtype)
        found = self.attention.cross_attend(query, self.attention.project(x))
        return (found + self.feedforward(self.norm(found)))[:, 0]


class PatchMeanPool(ClassToken):
    """The mean of the patch vectors beside a class token, as weights from BEiT and MAE are used."""

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Average over the tokens behind the class token."""
        check_axes(x, "batch token dim")
        return x[:, 1:].mean(dim=1)
