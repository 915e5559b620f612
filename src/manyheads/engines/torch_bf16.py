"""torch with weights in bfloat16: half the memory, and faster where the processor multiplies it."""

from typing import Any

import torch
from torch import nn

from manyheads.engines.engine import TorchEngine
from manyheads.project.folder import ModelFolder


class TorchBf16Engine(TorchEngine):
    """As torch, but every weight and what is computed between the layers has 8 bits of mantissa.

    When it pays: docs/engines.md.
    """

    name = "torch-bf16"

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        """Load the model and round its weights; images are rounded where a layer reads them."""
        model = super().load(folder, image_size).to(torch.bfloat16)
        for layer in model.modules():
            own = (layer, *layer.children())  # some use the weights of a part themselves
            if any(each.dim() > 1 for part in own for each in part.parameters(recurse=False)):
                layer.register_forward_pre_hook(_rounded)
        return model


def _rounded(_layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        each.to(torch.bfloat16) if torch.is_tensor(each) and each.is_floating_point() else each
        for each in given
    )
