"""A teacher: another classifier, whose opinion of each training picture is learned, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn

from manyheads.data.images import Preprocessing
from manyheads.errors import RecipeError


@dataclass(frozen=True, kw_only=True)
class Distil:
    """The [distil] table: learn from another classifier (Hinton et al. 2015)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    teacher: str  # folder or name of the classifier to learn from
    weight: Annotated[float, Ge(0), Le(1)] = 0.5  # of the teacher; the labels get the rest
    temperature: Annotated[float, Gt(0)] = 1.0
    hard: bool = False  # the teacher's choice alone, as in DeiT (Touvron et al. 2021)


class Teacher:
    """Sees what the student sees, augmented and mixed, in the size and scale it is used to."""

    def __init__(
        self,
        model: nn.Module,
        theirs: Preprocessing,
        ours: Preprocessing,
        labels: Sequence[str],
        classes: Sequence[str],
    ) -> None:
        """Bring a classifier and a student together.

        Args:
            model: the classifier.
            theirs: what its pictures look like.
            ours: the same of the student.
            labels: its classes, in the order of its logits.
            classes: the student's.

        Raises:
            RecipeError: they do not know the same classes, or see other channels.
        """
        if sorted(labels) != sorted(classes):
            unlike = sorted(set(labels) ^ set(classes))
            raise RecipeError(
                f"distil.teacher knows {len(labels)} classes, the data have {len(classes)}; only "
                f"one of them knows {', '.join(unlike[:8])}. Teacher and student need the same."
            )
        if (theirs.mode, theirs.channels) != (ours.mode, ours.channels):
            raise RecipeError(
                f"distil.teacher sees {theirs.mode} ({theirs.channels} channels), the student "
                f"{ours.mode} ({ours.channels}): give both the same image.mode."
            )
        self.model = model.eval().requires_grad_(False)
        self.size = (theirs.height, theirs.width)
        self.order = [list(labels).index(name) for name in classes]
        self.theirs, self.ours = theirs, ours

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Return logits in the order of the student's classes for its normalised images."""
        if next(self.model.parameters()).device != images.device:
            self.model.to(images.device)
        pixels = self.ours.restore(images)
        if images.shape[2:] != self.size:
            pixels = F.interpolate(
                pixels, self.size, mode="bilinear", align_corners=False, antialias=True
            )
        logits: Tensor = self.model(self.theirs.normalise(pixels))
        return logits[:, self.order]
