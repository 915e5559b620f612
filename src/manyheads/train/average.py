"""The weights to validate and save: the last ones, or an average over training."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.train.train_config import TrainConfig

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class Average:
    """Averages the weights of a model during training; a checkpoint holds its `state`.

    This one averages nothing: the last weights are used.
    """

    def __init__(self) -> None:
        self.state: dict[str, Tensor] = {}

    def after_step(self, model: nn.Module, step: int) -> None:
        """Include the weights after an update; the first step is 1."""

    def before_validation(self, model: nn.Module, step: int) -> None:
        """Include the weights at a validation."""

    def weights(self) -> Mapping[str, Tensor]:
        """Return the averaged parameters by name; the others are used unchanged."""
        return {}


class ExponentialAverage(Average):
    """Exponential moving average of the weights over all steps.

    The decay is smaller in the first steps; otherwise the initial weights would count for long.
    """

    def __init__(self, decay: float) -> None:
        super().__init__()
        self.decay = decay

    def after_step(self, model: nn.Module, step: int) -> None:
        """Update the average with the new weights."""
        named = {name: parameter.detach() for name, parameter in model.named_parameters()}
        if not self.state:
            self.state = {name: parameter.clone() for name, parameter in named.items()}
        share = 1 - min(self.decay, step / (step + 10))
        torch._foreach_lerp_([self.state[name] for name in named], list(named.values()), share)

    def weights(self) -> Mapping[str, Tensor]:
        """Return the moving average."""
        return self.state


class CheckpointAverage(Average):
    """The mean of the weights at the last `count` validations (Vaswani et al. 2017, 6.1).

    The state has the weights of each of them, as "STEP/NAME".
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def before_validation(self, model: nn.Module, step: int) -> None:
        """Add the weights, and drop the oldest."""
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


class TowardStart(Average):
    """The last weights, mixed with those before training (WiSE-FT, Wortsman et al. 2022).

    What the first ones knew is forgotten less than what training teaches is lost. The state has the
    weights before training.
    """

    def __init__(self, share: float, model: nn.Module) -> None:
        super().__init__()
        self.share = share
        self.last = {n: parameter.detach() for n, parameter in model.named_parameters()}
        self.state = {name: parameter.clone() for name, parameter in self.last.items()}

    def weights(self) -> Mapping[str, Tensor]:
        """Return (1 - share) of the last weights and a share of the first."""
        return {n: torch.lerp(last, self.state[n], self.share) for n, last in self.last.items()}


def average(config: TrainConfig, model: nn.Module) -> Average:
    """Build the average of a recipe; the model has the weights before training.

    Raises:
        UsageError: a mean of weights that lie far apart, for a model with batch norm.
    """
    if config.ema:
        return ExponentialAverage(config.ema)
    if config.average <= 1 and not config.toward_start:
        return Average()
    # Running means and variances belong to the newest weights: a moving average stays close to
    # these, the others do not. Frozen layers do not change theirs.
    normed = [
        name
        for name, part in model.named_modules()
        if isinstance(part, BATCH_NORMS) and any(p.requires_grad for p in part.parameters())
    ]
    if normed:
        key, off = ("average", 1) if config.average > 1 else ("toward_start", 0)
        raise UsageError(
            f"train.{key} is {getattr(config, key)}, but the model has batch norm ({normed[0]}), "
            f"whose running statistics do not match the mean of the weights: set it to {off}, or "
            "use train.ema instead, such as 0.999."
        )
    if config.toward_start:
        return TowardStart(config.toward_start, model)
    return CheckpointAverage(config.average)


def apply(average: Average, model: nn.Module) -> dict[str, Tensor]:
    """Copy the averaged weights into a model; return the replaced parameters."""
    return _replace(model, average.weights())


@contextmanager
def averaged(average: Average, model: nn.Module) -> Iterator[None]:
    """Use the averaged weights inside the context, then restore the training weights."""
    own = apply(average, model)
    try:
        yield
    finally:
        _replace(model, own)


@torch.no_grad()
def _replace(model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    parameters = dict(model.named_parameters())
    before = {name: parameters[name].detach().clone() for name in weights}
    for name, tensor in weights.items():
        parameters[name].copy_(tensor)
    return before
