"""Linear probes by layer (Alain & Bengio 2017)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

RIDGE = 1e-2  # L2 regularisation per example


def probe(
    train: Float[Tensor, "example dim"],
    train_labels: Int[Tensor, " example"],
    test: Float[Tensor, "other dim"],
    test_labels: Int[Tensor, " other"],
) -> float:
    """Accuracy in percent of a linear classifier on frozen vectors, fitted by least squares."""
    mean, std = train.double().mean(dim=0), train.double().std(dim=0).clamp_min(1e-6)
    x, y = (F.pad((each.double() - mean) / std, (0, 1), value=1.0) for each in (train, test))
    eye = RIDGE * len(x) * torch.eye(x.shape[1], dtype=torch.float64)
    weights = torch.linalg.solve(x.T @ x + eye, x.T @ F.one_hot(train_labels).double())
    return 100 * ((y @ weights).argmax(dim=1) == test_labels).double().mean().item()
