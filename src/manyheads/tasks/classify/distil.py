"""Knowledge distillation: a student also learns from the logits of a teacher classifier."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn

from manyheads.data.images.image_set import Preprocessing
from manyheads.errors import RecipeError


@dataclass(frozen=True, kw_only=True)
class Distil:
    """The [distil] table: learn from another classifier (Hinton et al. 2015)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    teacher: str  # folder or name of the classifier to learn from
    weight: Annotated[float, Ge(0), Le(1)] = 0.5  # of the teacher loss; the labels get the rest
    temperature: Annotated[float, Gt(0)] = 1.0
    hard: bool = False  # learn only the teacher's argmax, as in DeiT (Touvron et al. 2021)


class Teacher:
    """Classifies the student's augmented images, converted to the teacher's preprocessing."""

    def __init__(
        self,
        model: nn.Module,
        theirs: Preprocessing,
        ours: Preprocessing,
        labels: Sequence[str],
        classes: Sequence[str],
    ) -> None:
        """Match a teacher's preprocessing, and classes in the order of logits, to a student's.

        Raises:
            RecipeError: the classes or image channels of teacher and student differ.
        """
        if sorted(labels) != sorted(classes):
            unlike = sorted(set(labels) ^ set(classes))
            raise RecipeError(
                f"distil.teacher has {len(labels)} classes, the data have {len(classes)}; only "
                f"one of them has {', '.join(unlike[:8])}. Teacher and data need the same classes."
            )
        if (theirs.mode, theirs.channels) != (ours.mode, ours.channels):
            raise RecipeError(
                f"distil.teacher reads {theirs.mode} ({theirs.channels} channels), the student "
                f"{ours.mode} ({ours.channels}): give both the same image.mode."
            )
        self.model = model.eval().requires_grad_(False)
        self.size = (theirs.height, theirs.width)
        self.order = [list(labels).index(name) for name in classes]
        self.theirs, self.ours = theirs, ours

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Return the teacher's logits of the student's images, in the student's class order."""
        if next(self.model.parameters()).device != images.device:
            self.model.to(images.device)
        pixels = self.ours.restore(images)
        if images.shape[2:] != self.size:
            pixels = F.interpolate(
                pixels, self.size, mode="bilinear", align_corners=False, antialias=True
            )
        logits: Tensor = self.model(self.theirs.normalise(pixels))
        return logits[:, self.order]
