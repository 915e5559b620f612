"""The optimizers: fused AdamW, and Muon for the matrices inside Transformer blocks."""

from collections import defaultdict
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from manyheads.errors import TrainingError
from manyheads.nn.block import DecoderBlock, EncoderBlock
from manyheads.train.config import TrainConfig


class Optimizer(Protocol):
    """What the loop and the checkpoints need of torch's optimizers."""

    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, Any]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""

    def step(self) -> Any:
        """Update the parameters."""


def optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Build what a recipe asks for.

    Raises:
        TrainingError: Muon is asked for, and the model has no Transformer blocks.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return muon(model, parameters, config) if config.muon else adamw(parameters, config)


def adamw(parameters: list[nn.Parameter], config: TrainConfig) -> torch.optim.AdamW:
    """Build AdamW (Loshchilov & Hutter 2019); vectors (biases, norms) are not decayed."""
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), fused=True
    )


def muon(model: nn.Module, parameters: list[nn.Parameter], config: TrainConfig) -> "Together":
    """Build Muon (Jordan et al. 2024) for the blocks' linear layers, AdamW for everything else.

    Muon moves a matrix by its momentum made orthogonal, so that no few directions take all of a
    step. Embeddings and output layers, whose rows are rarely used words, are better off with AdamW.
    The step has the size of AdamW's (Liu et al. 2025, equation 4): one learning rate serves both.
    """
    inside = {
        id(layer.weight)
        for block in model.modules()
        if isinstance(block, EncoderBlock | DecoderBlock)
        for layer in block.modules()
        if isinstance(layer, nn.Linear)
    }
    matrices = [p for p in parameters if id(p) in inside]
    if not matrices:
        raise TrainingError(
            "train.muon = true asks for Muon, which trains the matrices of Transformer blocks; "
            f"{type(model).__name__} has none to train. Leave train.muon out to use AdamW."
        )
    return Together(
        torch.optim.Muon(
            matrices,
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        ),
        adamw([p for p in parameters if id(p) not in inside], config),
    )


class Together:
    """Optimizers of different parameters, used as one."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts
        self.param_groups = [group for part in parts for group in part.param_groups]
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        for part in parts:
            part.state = self.state  # one dictionary: a checkpoint restores into it

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none)

    def step(self) -> None:
        """Update the parameters."""
        for part in self.parts:
            part.step()
