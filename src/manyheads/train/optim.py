"""Optimizers: fused AdamW, and Muon for the layers that blocks name."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from manyheads.errors import TrainingError
from manyheads.train.batched_muon import Muon
from manyheads.train.layer_groups import depths
from manyheads.train.train_config import TrainConfig

SCALE = "scale"  # key of a parameter group: the factor on the schedule's learning rate


class Optimizer(Protocol):
    """The interface of torch's optimizers that the loop and the checkpoints use."""

    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, Any]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""

    def step(self) -> Any:
        """Update the parameters."""


def optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Build the optimizer of a recipe.

    Raises:
        TrainingError: Muon is requested, but no block of the model has layers for it.
    """
    parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
    return muon(model, parameters, config) if config.muon else adamw(model, parameters, config)


def adamw(
    model: nn.Module, parameters: Mapping[str, nn.Parameter], config: TrainConfig
) -> torch.optim.AdamW:
    """Build AdamW (Loshchilov & Hutter 2019); no weight decay on vectors (biases, norms)."""
    return torch.optim.AdamW(
        _groups(model, parameters, config),
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        fused=True,
    )


def _groups(
    model: nn.Module, parameters: Mapping[str, nn.Parameter], config: TrainConfig
) -> list[dict[str, Any]]:
    """Group parameters by weight decay and by the factor on the learning rate."""
    depth = depths(model) if config.layer_decay < 1 else dict.fromkeys(parameters, 0)
    top = max(depth.values(), default=0)
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {(top, True): [], (top, False): []}
    for name, parameter in parameters.items():
        groups.setdefault((depth[name], parameter.ndim >= 2), []).append(parameter)
    return [
        {
            "params": members,
            "weight_decay": config.weight_decay if matrices else 0.0,
            SCALE: config.layer_decay ** (top - layer),
        }
        for (layer, matrices), members in groups.items()
    ]


def muon(
    model: nn.Module, parameters: Mapping[str, nn.Parameter], config: TrainConfig
) -> "Together":
    """Build Muon (Jordan et al. 2024) for the layers that blocks name, AdamW for everything else.

    Muon orthogonalises the momentum of a matrix, so that no few directions dominate a step.
    Embeddings and output layers, with rows for rare words, train better with AdamW. Muon's steps
    are scaled to AdamW's size (Liu et al. 2025, equation 4): both use the same learning rate.
    """
    inside = {
        id(layer.weight)
        for block in model.modules()
        if (kind := getattr(block, "muon_layers", None)) is not None
        for layer in block.modules()
        if isinstance(layer, kind)
    }
    matrices = {name: p for name, p in parameters.items() if id(p) in inside}
    if not matrices:
        raise TrainingError(
            "train.muon = true: Muon trains the matrices of Transformer blocks and the "
            f"filters of airbench, but {type(model).__name__} has none to train. Use AdamW: "
            "train.muon=false."
        )
    return Together(
        Muon(
            [group for group in _groups(model, matrices, config) if group["params"]],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        ),
        adamw(model, {n: p for n, p in parameters.items() if n not in matrices}, config),
    )


class Together:
    """Several optimizers of different parameters, used as one."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts
        self.param_groups = [group for part in parts for group in part.param_groups]
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        for part in parts:
            part.state = self.state  # one dictionary: a checkpoint restores into it

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none)

    def step(self) -> None:
        """Update the parameters."""
        for part in self.parts:
            part.step()
