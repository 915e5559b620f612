"""Classifier losses for soft targets (class shares) and for several classes per image.

All are sums over the images, with the weight to divide by, as in `train/training_task.py`.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


class Weighted(NamedTuple):
    """A sum over images, and their total weight."""

    sum: Tensor
    weight: float


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """One-hot encode class numbers: (image,) to (image, class)."""
    return labels if labels.ndim == 2 else F.one_hot(labels, classes).float()


def soft_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None = None
) -> Weighted:
    """Cross-entropy with class shares, label smoothing (Szegedy et al. 2016) and class weights.

    If every image has one class this equals `F.cross_entropy(..., weight=weights,
    label_smoothing=smoothing, reduction="sum")`, and the weight is the divisor of "mean".

    Args:
        logits: (image, class).
        targets: (image, class) shares that sum to 1.
        smoothing: the part of each target that is distributed evenly over all classes.
        weights: (class,); None: all 1.
    """
    log_p = logits.float().log_softmax(dim=1)
    wanted = (1 - smoothing) * targets + smoothing / logits.shape[1]
    if weights is None:
        return Weighted(-(wanted * log_p).sum(), float(len(logits)))
    return Weighted(-(wanted * weights * log_p).sum(), float((targets @ weights).sum()))


def binary_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None = None
) -> Weighted:
    """Binary cross-entropy of each class (sigmoid loss), averaged over the classes.

    Args:
        logits: (image, class).
        targets: (image, class) between 0 and 1.
        smoothing: moves targets towards 1/2.
        weights: (class,) weights of positive targets; None: all 1.
    """
    wanted = (1 - smoothing) * targets + smoothing / 2
    loss = F.binary_cross_entropy_with_logits(
        logits.float(), wanted, pos_weight=weights, reduction="sum"
    )
    return Weighted(loss / logits.shape[1], float(len(logits)))


def distillation(logits: Tensor, teacher: Tensor, temperature: float, *, hard: bool) -> Tensor:
    """Distillation loss, summed over the images.

    Soft: temperature^2 KL(teacher || student), both at the temperature (Hinton et al. 2015). Hard:
    cross-entropy with the teacher's argmax (Touvron et al. 2021, equation 3).

    Args:
        logits: (image, class) of the student.
        teacher: (image, class) logits of the teacher.
        temperature: above 1 gives more weight to the teacher's less likely classes.
        hard: use only the teacher's argmax.
    """
    if hard:
        return F.cross_entropy(logits.float(), teacher.argmax(dim=1), reduction="sum")
    student = (logits.float() / temperature).log_softmax(dim=1)
    wanted = (teacher.float() / temperature).log_softmax(dim=1)
    divergence = F.kl_div(student, wanted, log_target=True, reduction="sum")
    return temperature**2 * divergence


def balanced_weights(labels: np.ndarray, classes: int) -> Tensor:
    """Weigh classes so that rare ones count as much as frequent ones.

    One class an image: images / (classes x images of the class), which is 1 on average over
    the images. Several: for each class how many images lack it for one that has it.
    """
    if labels.ndim == 2:
        having = labels.sum(axis=0)
        ratio = (len(labels) - having) / np.maximum(having, 1)
        return torch.from_numpy(np.maximum(ratio, 1e-3)).float()
    counts = np.bincount(labels, minlength=classes)
    return torch.from_numpy(len(labels) / (classes * np.maximum(counts, 1))).float()
