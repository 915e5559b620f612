"""DeiT: Touvron et al. 2021, "Training data-efficient image transformers"."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.vit import Pool, Vit, VitConfig
from manyheads.nn.head import Head


@dataclass(frozen=True, kw_only=True)
class DeitConfig(VitConfig):
    """A ViT with a distillation token; the defaults are DeiT-B (table 1) at 224 pixels."""

    pool: Pool = "distilled"

    def __post_init__(self) -> None:
        """Refuse what would come between the two tokens and their heads."""
        super().__post_init__()
        if self.pool != "distilled":
            raise UsageError(
                f"pool is {self.pool!r}, but a DeiT's heads read its class and its distillation "
                'token: leave pool "distilled", or take a ViT.'
            )
        if self.pool_norm != "before":
            raise UsageError(
                f"pool_norm is {self.pool_norm!r}, but a DeiT's heads read two tokens and no "
                'pooled vector: leave pool_norm "before", or take a ViT.'
            )
        if self.representation:
            raise UsageError(
                f"representation is {self.representation}, but a DeiT's heads read their tokens "
                "directly: leave representation out, or take a ViT."
            )


class Answers(NamedTuple):
    """What each of the two heads says: the first learns from labels, the second from a teacher."""

    labels: Float[Tensor, "batch classes"]
    teacher: Float[Tensor, "batch classes"]


class Deit(Vit):
    """A Vit with a distillation token behind the class token, and a head for each (section 4)."""

    def __init__(self, config: DeitConfig) -> None:
        super().__init__(config)
        self.teacher_head = Head(config.dim, config.classes)
        nn.init.zeros_(self.teacher_head.weight)
        nn.init.zeros_(self.teacher_head.bias)

    def answers(self, images: Float[Tensor, "batch channel height width"]) -> Answers:
        """Score every class twice: in training, each head has a target of its own (equation 3)."""
        x = self.features(images)
        return Answers(self.head(x[:, 0]), self.teacher_head(x[:, 1]))

    def forward(  # type: ignore[override]  # two answers where there are two targets
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch classes"] | Answers:
        """Average what both heads say; in training, tell them apart."""
        answers = self.answers(images)
        return answers if self.training else (answers.labels + answers.teacher) / 2
