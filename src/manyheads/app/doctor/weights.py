"""What a run's weights show: whether they are numbers, and how far they have come."""

from typing import NamedTuple

import torch
from torch import nn

from manyheads.app.doctor.finding import Finding, rounded
from manyheads.app.doctor.patient import Patient
from manyheads.app.recipe import Recipe
from manyheads.train.checkpoint import tensors

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


def measure(patient: Patient, model: nn.Module) -> Weights | None:
    """Compare with the initial weights; None where these are not known."""
    if patient.started or patient.converted or patient.recipe.train.freeze:
        return None
    first = tensors(patient.first_model())
    now = {name: tensor.cpu().float() for name, tensor in tensors(model).items()}
    matrices = [
        (first[name].float(), now[name])
        for name in first.keys() & now.keys()
        if first[name].ndim >= 2 and first[name].shape == now[name].shape and first[name].any()
    ]
    if not matrices:
        return None
    moved = torch.stack([(new - old).norm() / old.norm() for old, new in matrices])
    usual = torch.stack([old.square().mean().sqrt() for old, _ in matrices]).median()
    rates = [line["learning_rate"] for line in patient.history.training]
    largest = max(rates, default=patient.recipe.train.learning_rate)
    return Weights(float(moved.median()), largest / float(usual))


def not_numbers(model: nn.Module) -> list[Finding]:
    """Say if weights are infinite or not a number."""
    bad = [name for name, tensor in tensors(model).items() if not torch.isfinite(tensor).all()]
    if not bad:
        return []
    return [
        Finding(
            kind="non-finite-weights",
            severity="error",
            what="The stored weights are infinite or not numbers: the model cannot answer.",
            evidence=(f"{len(bad)} tensors, first {', '.join(bad[:3])}",),
            remedy="Go back to an older checkpoint in state/, or train anew with a lower "
            'train.learning_rate; if the recipe stores float16, with train.store = "float32".',
        )
    ]


def hardly_moved(patient: Patient, weights: Weights | None) -> list[Finding]:
    """Say if the updates were too small, or too few, to get anywhere."""
    if weights is None or weights.moved >= HARDLY or not patient.history.training:
        return []
    return [not_far(patient.recipe, weights, patient.history.last_step)]


def not_far(recipe: Recipe, weights: Weights, step: int, *more: str) -> Finding:
    """Say why the weights are nearly what they were: a rate too low, or too few steps.

    Args:
        recipe: of the run.
        weights: how far they have come.
        step: the last one.
        more: evidence that this is bad; without any it is only a warning.
    """
    slow = weights.step < SMALL_STEP
    settings: dict[str, object] = (
        {"train.learning_rate": rounded(10 * recipe.train.learning_rate)}
        if slow
        else {"train.steps": 10 * recipe.train.steps}
    )
    return Finding(
        kind="learning-rate-low" if slow else "too-short",
        severity="error" if more else "warning",
        what="The weights have hardly moved since the first step: "
        + ("the learning rate is too low." if slow else "training was too short."),
        evidence=(
            *more,
            f"after {step:,} steps the median matrix differs from its initial values by "
            f"{100 * weights.moved:.2g}% of their norm; a step moves a weight by at most "
            f"{100 * weights.step:.2g}% of its initial size",
        ),
        remedy="Learn faster." if slow else "Train longer.",
        settings=settings,
        step=step,
    )
