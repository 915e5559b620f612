"""Which weights to validate and to keep: the last ones, or an average over the way to them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.train.config import TrainConfig

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class Average(Protocol):
    """Follows the weights of a model in training; a checkpoint holds its `state`."""

    state: dict[str, Tensor]

    def after_step(self, model: nn.Module, step: int) -> None:
        """Take note of an update, the first step being 1."""

    def before_validation(self, model: nn.Module, step: int) -> None:
        """Take note of a validation."""

    def weights(self) -> Mapping[str, Tensor]:
        """Return the averaged parameters by name; those not in it are used as they are."""


class Newest:
    """No average."""

    def __init__(self) -> None:
        self.state: dict[str, Tensor] = {}

    def after_step(self, model: nn.Module, step: int) -> None:
        """Nothing to note."""

    def before_validation(self, model: nn.Module, step: int) -> None:
        """Nothing to note."""

    def weights(self) -> Mapping[str, Tensor]:
        """Leave all parameters as they are."""
        return {}


class ExponentialAverage:
    """Weights averaged over all steps, each counting `decay` times as much as the one after it.

    Early on the average follows faster, or the initial weights would stay in it for long.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.state: dict[str, Tensor] = {}

    def after_step(self, model: nn.Module, step: int) -> None:
        """Move a little towards the new weights."""
        named = {name: parameter.detach() for name, parameter in model.named_parameters()}
        if not self.state:
            self.state = {name: parameter.clone() for name, parameter in named.items()}
        share = 1 - min(self.decay, step / (step + 10))
        torch._foreach_lerp_([self.state[name] for name in named], list(named.values()), share)

    def before_validation(self, model: nn.Module, step: int) -> None:
        """Nothing to note: every step was."""

    def weights(self) -> Mapping[str, Tensor]:
        """Return the moving average."""
        return self.state


class CheckpointAverage:
    """The mean of the weights at the last `count` validations (Vaswani et al. 2017, 6.1)."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.state: dict[str, Tensor] = {}  # "STEP/NAME"

    def after_step(self, model: nn.Module, step: int) -> None:
        """Nothing to note: only validations count."""

    def before_validation(self, model: nn.Module, step: int) -> None:
        """Keep the weights, and forget the oldest."""
        for name, parameter in model.named_parameters():
            self.state[f"{step:09d}/{name}"] = parameter.detach().clone()
        steps = sorted({key.partition("/")[0] for key in self.state})
        kept = set(steps[-self.count :])
        self.state = {k: v for k, v in self.state.items() if k.partition("/")[0] in kept}

    def weights(self) -> Mapping[str, Tensor]:
        """Return the mean."""
        parts: dict[str, list[Tensor]] = {}
        for key, tensor in self.state.items():
            parts.setdefault(key.partition("/")[2], []).append(tensor)
        return {name: torch.stack(tensors).mean(dim=0) for name, tensors in parts.items()}


def average(config: TrainConfig, model: nn.Module) -> Average:
    """Build what a recipe asks for.

    Raises:
        UsageError: a mean of checkpoints, of a model with batch norm.
    """
    if config.ema:
        return ExponentialAverage(config.ema)
    if config.average <= 1:
        return Newest()
    # Running means and variances are those of the newest weights: a moving average stays close to
    # these, a mean over validations does not. Frozen layers keep what they have.
    normed = [
        name
        for name, part in model.named_modules()
        if isinstance(part, BATCH_NORMS) and any(p.requires_grad for p in part.parameters())
    ]
    if normed:
        raise UsageError(
            f"train.average is {config.average}, but the model has batch norm ({normed[0]}), whose "
            "running statistics would not fit the mean of the weights: leave it 1, or set "
            "train.ema, such as 0.999, instead."
        )
    return CheckpointAverage(config.average)


@torch.no_grad()
def apply(average: Average, model: nn.Module) -> dict[str, Tensor]:
    """Put the averaged weights into a model; return the parameters they replaced."""
    parameters = dict(model.named_parameters())
    weights = average.weights()
    own = {name: parameters[name].detach().clone() for name in weights}
    for name, tensor in weights.items():
        parameters[name].copy_(tensor)
    return own


@contextmanager
def averaged(average: Average, model: nn.Module) -> Iterator[None]:
    """Use the averaged weights for a while; then training goes on from its own."""
    own = apply(average, model)
    try:
        yield
    finally:
        parameters = dict(model.named_parameters())
        with torch.no_grad():
            for name, tensor in own.items():
                parameters[name].copy_(tensor)
