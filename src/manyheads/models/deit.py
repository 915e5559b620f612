"""DeiT: Touvron et al. 2021, "Training data-efficient image transformers"."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from manyheads.errors import UsageError
from manyheads.models.image_encoder import Pool
from manyheads.models.vit import Vit, VitConfig
from manyheads.nn.layers.head import Head
from manyheads.nn.shapes import ClassScores, Images


@dataclass(frozen=True, kw_only=True)
class DeitConfig(VitConfig):
    """A ViT with a distillation token; the defaults are DeiT-B (table 1) at 224 pixels."""

    tasks = ("classify",)
    behind_features = (*VitConfig.behind_features, "teacher_head")

    pool: Pool = "distilled"

    def __post_init__(self) -> None:
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
        if not self.classes:
            raise UsageError(
                "classes is 0, but a DeiT is trained through the heads of its two tokens: give it "
                'classes, or take a ViT with pool "distilled".'
            )
        if self.representation:
            raise UsageError(
                f"representation is {self.representation}, but a DeiT's heads read their tokens "
                "directly: leave representation out, or take a ViT."
            )

    def build(self) -> "Deit":
        """Build the model with fresh weights."""
        return Deit(self)


class TwoLogits(NamedTuple):
    """Logits of the two heads: the first learns from labels, the second from a teacher."""

    labels: ClassScores
    teacher: ClassScores


class Deit(Vit):
    """A Vit with a distillation token behind the class token, and a head for each (section 4)."""

    def __init__(self, config: DeitConfig) -> None:
        super().__init__(config)
        self.teacher_head = Head(config.dim, config.classes)
        nn.init.zeros_(self.teacher_head.weight)
        nn.init.zeros_(self.teacher_head.bias)

    def answers(self, images: Images) -> TwoLogits:
        """Score every class twice: in training, each head has a target of its own (equation 3)."""
        x = self.features(images)
        return TwoLogits(self.head(x[:, 0]), self.teacher_head(x[:, 1]))

    def forward(  # type: ignore[override]  # two answers where there are two targets
        self, images: Images
    ) -> ClassScores | TwoLogits:
        """Return the mean of both heads, in training the logits of each."""
        answers = self.answers(images)
        return answers if self.training else (answers.labels + answers.teacher) / 2
