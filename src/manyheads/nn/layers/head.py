"""The top of a model: heads, which know the classes, and pools that learn.

Training (`train/layer_groups.py`) and starting from another model
(`tasks/classify/initialize.py`) find them by their kind: no name says so.
"""

from torch import nn

from manyheads.nn.layers.linear import Linear


class ClassifierHeadPart(nn.Module):
    """A part behind all layers, wherever a model registers it."""


class Head(Linear, ClassifierHeadPart):
    """A classifier's last layer: other classes need another one."""


def heads(model: nn.Module) -> list[str]:
    """Name the heads of a model; DeiT has two."""
    return [name for name, part in model.named_modules() if isinstance(part, Head)]
