"""Losses of a classifier whose targets are shares of classes, or several classes at once.

All are sums over the pictures, with the weight to divide by, as `train/task.py` has it.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


class Weighed(NamedTuple):
    """A sum over pictures, and what they weigh together."""

    sum: Tensor
    weight: float


def shares(labels: Tensor, classes: int) -> Tensor:
    """Write classes as shares: (picture,) numbers become (picture, class) with a 1 each."""
    return labels if labels.ndim == 2 else F.one_hot(labels, classes).float()


def soft_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None = None
) -> Weighed:
    """Cross-entropy against shares of classes, smoothed (Szegedy et al. 2016), classes weighed.

    Where every picture has one class this equals `F.cross_entropy(..., weight=weights,
    label_smoothing=smoothing, reduction="sum")`, and the weight is what "mean" divides by.

    Args:
        logits: (picture, class).
        targets: (picture, class) shares that add up to 1.
        smoothing: the part of each target that is spread evenly over all classes.
        weights: (class,); None: all 1.
    """
    log_p = logits.float().log_softmax(dim=1)
    wanted = (1 - smoothing) * targets + smoothing / logits.shape[1]
    if weights is None:
        return Weighed(-(wanted * log_p).sum(), float(len(logits)))
    return Weighed(-(wanted * weights * log_p).sum(), float((targets @ weights).sum()))


def binary_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None = None
) -> Weighed:
    """Each class a question of its own: the sigmoid loss, averaged over the classes.

    Args:
        logits: (picture, class).
        targets: (picture, class) between 0 and 1.
        smoothing: draws targets towards 1/2.
        weights: (class,) of the cases where the class applies; None: all 1.
    """
    wanted = (1 - smoothing) * targets + smoothing / 2
    loss = F.binary_cross_entropy_with_logits(
        logits.float(), wanted, pos_weight=weights, reduction="sum"
    )
    return Weighed(loss / logits.shape[1], float(len(logits)))


def distillation(logits: Tensor, teacher: Tensor, temperature: float, *, hard: bool) -> Tensor:
    """Sum over the pictures of how far a student is from its teacher.

    Soft: temperature^2 KL(teacher || student), both at the temperature (Hinton et al. 2015). Hard:
    cross-entropy against the teacher's own choice (Touvron et al. 2021, equation 3).

    Args:
        logits: (picture, class) of the student.
        teacher: (picture, class) logits.
        temperature: above 1 shows more of what the teacher thinks of the other classes.
        hard: go by the likeliest class alone.
    """
    if hard:
        return F.cross_entropy(logits.float(), teacher.argmax(dim=1), reduction="sum")
    student = (logits.float() / temperature).log_softmax(dim=1)
    wanted = (teacher.float() / temperature).log_softmax(dim=1)
    divergence = F.kl_div(student, wanted, log_target=True, reduction="sum")
    return temperature**2 * divergence


def balanced_weights(labels: np.ndarray, classes: int) -> Tensor:
    """Weigh classes so that rare ones count as much as frequent ones.

    One class a picture: pictures / (classes x pictures of the class), which is 1 on average over
    the pictures. Several: for each class how many pictures lack it for one that has it.
    """
    if labels.ndim == 2:
        having = labels.sum(axis=0)
        ratio = (len(labels) - having) / np.maximum(having, 1)
        return torch.from_numpy(np.maximum(ratio, 1e-3)).float()
    counts = np.bincount(labels, minlength=classes)
    return torch.from_numpy(len(labels) / (classes * np.maximum(counts, 1))).float()
