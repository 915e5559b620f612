"""Check of a run's weights: whether they are finite, and how far they have moved."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from manyheads.doctor.finding import Finding, Findings, finding, rounded
from manyheads.doctor.run_inspection import RunInspection
from manyheads.project.base_recipe import Recipe
from manyheads.train.model_tensors import not_finite, tensors

# Of the norm of the initial weights. Shipped models moved by 0.46 to 2.3 times it.
HARDLY = 0.1
# A step of Adam is about the learning rate for every weight (Kingma & Ba 2015, section 2.1), here
# as a share of a typical weight. Shipped models: 0.024 to 0.064. With steps ten times larger, a few
# of them forget all; with steps that are as many times smaller, a run gets nowhere.
LARGE_STEP = 0.3
SMALL_STEP = 0.005


class Weights(NamedTuple):
    """How far the matrices of a model have come since its first step."""

    moved: float  # the change of the median matrix, as a share of its initial norm
    step: float  # the largest update of a weight, as a share of a typical initial one


def measure(run: RunInspection, model: nn.Module) -> Weights | None:
    """Compare with the initial weights; None where these are not known."""
    if run.started or run.recipe.origin or run.recipe.train.freeze:
        return None
    first = tensors(run.first_model())
    now = {name: tensor.cpu().float() for name, tensor in tensors(model).items()}
    matrices = [
        (first[name].float(), now[name])
        for name in first.keys() & now.keys()
        if first[name].ndim >= 2 and first[name].shape == now[name].shape and first[name].any()
    ]
    if not matrices:
        return None
    moved = torch.stack([(new - old).norm() / old.norm() for old, new in matrices])
    rates = [line["learning_rate"] for line in run.history.training]
    largest = max(rates, default=run.recipe.train.learning_rate)
    return Weights(float(moved.median()), largest / usual_size([old for old, _ in matrices]))


def usual_size(matrices: Sequence[torch.Tensor]) -> float:
    """Return the size of a typical weight: the median of the matrices' root mean squares."""
    return float(torch.stack([each.float().square().mean().sqrt() for each in matrices]).median())


def not_numbers(model: nn.Module) -> Findings:
    """Find weights that are infinite or not a number."""
    if bad := not_finite(tensors(model)):
        yield finding("non-finite-weights", f"{len(bad)} tensors, first {', '.join(bad[:3])}")


def hardly_moved(run: RunInspection, weights: Weights | None) -> Findings:
    """Find updates that were too small, or too few, to change the weights."""
    if weights is not None and weights.moved < HARDLY and run.history.training:
        yield not_far(run.recipe, weights, run.history.last_step)


def not_far(recipe: Recipe, weights: Weights, step: int, *more: str) -> Finding:
    """Report that the weights are nearly the initial ones: a rate too low, or too few steps.

    With `more` evidence that this is bad it is an error.
    """
    slow = weights.step < SMALL_STEP
    settings = (
        {"train.learning_rate": rounded(10 * recipe.train.learning_rate)}
        if slow
        else {"train.steps": 10 * recipe.train.steps}
    )
    return finding(
        "learning-rate-low:weights" if slow else "too-short:weights",
        *more,
        f"after {step:,} steps the median matrix differs from its initial values by "
        f"{100 * weights.moved:.2g}% of their norm; a step moves a weight by at most "
        f"{100 * weights.step:.2g}% of its initial size",
        severity="error" if more else "warning",
        settings=settings,
        step=step,
    )
