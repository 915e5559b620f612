"""Losses of two towers: every image of a batch against every text.

A pair may belong together off the diagonal too: two images of a batch may share a text. Sums over
the batch, with the weight to divide by, as in `train/training_task.py`.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

Contrast = Literal["softmax", "sigmoid"]

Pairs = Float[Tensor, "image text"]
Belong = Bool[Tensor, "image text"]


def softmax_contrast(scores: Pairs, positives: Belong) -> Tensor:
    """Sum of the cross-entropies over texts of each image, and over images of each text, halved.

    CLIP (Radford et al. 2021, figure 3); the target is shared out evenly among the positives.
    """
    wanted = positives.to(scores.dtype)
    by_image = wanted / wanted.sum(dim=1, keepdim=True).clamp(min=1)
    by_text = wanted / wanted.sum(dim=0, keepdim=True).clamp(min=1)
    rows = (by_image * scores.log_softmax(dim=1)).sum()
    columns = (by_text * scores.log_softmax(dim=0)).sum()
    return -(rows + columns) / 2


def sigmoid_contrast(scores: Pairs, positives: Belong) -> Tensor:
    """Sum over all pairs of the binary cross-entropy: SigLIP (Zhai et al. 2023, equation 1)."""
    signs = torch.where(positives, 1.0, -1.0)
    return -F.logsigmoid(signs * scores).sum()


CONTRASTS: dict[Contrast, Callable[[Pairs, Belong], Tensor]] = {
    "softmax": softmax_contrast,
    "sigmoid": sigmoid_contrast,
}
