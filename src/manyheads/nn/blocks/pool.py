"""From a sequence of tokens to one vector: extra tokens, the mean, or attention over the tokens."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.attention.attention import MultiHeadAttention, attend
from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward
from manyheads.nn.layers.head import ClassifierHeadPart
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.token_grid import REGISTER
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import current_grid, prepend_tokens
from manyheads.nn.shapes import Tokens, check_axes


class ExtraTokens(nn.Module):
    """Learned tokens in front of the patches: those of a pool, then registers.

    Registers are tokens that no pool reads: attention stores in them what it would otherwise store
    in patches without content (Darcet et al. 2024, "Vision Transformers Need Registers").
    """

    names: tuple[str, ...] = ()

    def __init__(self, dim: int, heads: int = 1, *, registers: int = 0) -> None:
        super().__init__()
        self.names = extra_names(type(self).names, registers)
        self.extra = len(self.names)
        self.outputs = dim  # width of the pooled vector
        if self.names:
            self.token = nn.Parameter(torch.empty(1, self.extra, dim))
            nn.init.trunc_normal_(self.token, std=0.02)

    def prepend(self, x: Float[Tensor, "batch patch dim"]) -> Tokens:
        """Put the tokens before the patches, if there are any."""
        if not self.names:
            return x
        prepend_tokens(self.names)
        return torch.cat((self.token.expand(x.shape[0], -1, -1).to(x.dtype), x), dim=1)


class ClassToken(ExtraTokens):
    """A learned token in front, whose final vector stands for the image (ViT, equations 1, 4)."""

    names: tuple[str, ...] = ("class token",)

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Read the class token's final vector."""
        check_axes(x, "batch token dim")
        return x[:, 0]


class TwoTokens(ClassToken):
    """A class token and a distillation token, which learns from a teacher (DeiT, section 4).

    The vector of the image is their mean; `models/deit.py` reads each through a head of its own.
    """

    names = ("class token", "distillation token")

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Average the final vectors of both."""
        check_axes(x, "batch token dim")
        return x[:, :2].mean(dim=1)


class MeanPool(ExtraTokens):
    """The mean of all patch vectors; no extra token but registers."""

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Average over the patches."""
        check_axes(x, "batch token dim")
        return x[:, self.extra :].mean(dim=1)


class SequencePool(MeanPool, ClassifierHeadPart):
    """A mean weighted by softmax(g(x)) over the tokens, with g linear (CCT, equations 4 to 6).

    That is attention with one learned query over the tokens themselves: its map is recorded too.
    The bias of g is left out, because softmax is blind to it.
    """

    def __init__(self, dim: int, heads: int = 1, *, registers: int = 0) -> None:
        _refuse_registers(registers)
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

    Behind it a feed-forward layer of its own: "multihead attention pooling" (Lee et al. 2019), by
    default four times as wide, with GELU.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        registers: int = 0,
        feedforward: FeedForward | GatedFeedForward | None = None,
        eps: float = 1e-5,
    ) -> None:
        _refuse_registers(registers)
        super().__init__(dim)
        self.query = nn.Parameter(torch.empty(1, 1, dim))
        nn.init.trunc_normal_(self.query, std=0.02)
        self.attention = MultiHeadAttention(dim, heads)
        self.attention.layer_id = LayerId("pool", 0, "attention")
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.feedforward = feedforward or FeedForward(dim, 4 * dim, nn.GELU())

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Ask the tokens once."""
        check_axes(x, "batch token dim")
        query = self.query.expand(x.shape[0], -1, -1).to(x.dtype)
        found = self.attention.cross_attend(query, self.attention.project(x))
        return (found + self.feedforward(self.norm(found)))[:, 0]


class PatchMeanPool(ClassToken):
    """The mean of the patch vectors beside a class token, as weights from BEiT and MAE are used."""

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Average over the patches."""
        check_axes(x, "batch token dim")
        return x[:, self.extra :].mean(dim=1)


class ClassAndMeanPool(ClassToken):
    """The class token's vector and behind it the mean of the patches: twice as wide as a token.

    DINOv2's linear classifiers read both (Oquab et al. 2024).
    """

    def __init__(self, dim: int, heads: int = 1, *, registers: int = 0) -> None:
        super().__init__(dim, heads, registers=registers)
        self.outputs = 2 * dim

    def forward(self, x: Tokens) -> Float[Tensor, "batch two_dims"]:
        """Put both vectors behind each other."""
        check_axes(x, "batch token dim")
        return torch.cat((x[:, 0], x[:, self.extra :].mean(dim=1)), dim=1)


def extra_names(names: tuple[str, ...], registers: int) -> tuple[str, ...]:
    """Name the tokens in front of the patches: those of a pool, then its registers."""
    return (*names, *(f"{REGISTER} {number + 1}" for number in range(registers)))


def _refuse_registers(registers: int) -> None:
    if registers:
        raise UsageError(
            f"registers is {registers}, but a pool that attends to the patches has no register "
            'tokens: choose pool = "class", "mean", "patch-mean" or "class-and-mean", or leave '
            "registers out."
        )
