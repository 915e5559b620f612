"""Layer numbers of parameters, for layer-wise learning rates, and frozen parameters.

Layers are found by name: a numbered module with submodules ("encoder.blocks.3", "stages.1.0") is
one layer; parameters registered before the first are layer 0, those after the last (norm, head)
are the top. This requires blocks to be registered in the order of their use; learned pooling and
heads are the top wherever they are registered.
"""

from collections.abc import Mapping, Sequence

from torch import nn

from manyheads.errors import TrainingError, nearest
from manyheads.nn.layers.head import ClassifierHeadPart, heads

HEAD = "head"  # in train.freeze: all heads of the model


def depths(model: nn.Module) -> dict[str, int]:
    """Return the layer number of each parameter by name, from the input (0) to the output."""
    parts = dict(model.named_modules())
    names = [name for name, _ in model.named_parameters()]
    layers = [_layer(name, parts) for name in names]
    last = max((index for index, layer in enumerate(layers) if layer), default=-1)
    layer_of: dict[str, int] = {}
    depth, current = 0, ""
    for index, (name, layer) in enumerate(zip(names, layers, strict=True)):
        if layer and layer != current:
            depth, current = depth + 1, layer
        layer_of[name] = depth if index <= last else depth + 1
    tops = [name for name, part in parts.items() if isinstance(part, ClassifierHeadPart)]
    return layer_of | {name: depth + 1 for name in names if _begins(name, tops)}


def _layer(name: str, parts: Mapping[str, nn.Module]) -> str:
    """Return the name of the layer that contains a parameter; "" if there is none.

    It is the innermost numbered module with submodules: of "stages.1.0.end.1.gain" the block, not
    the stage or the gain.
    """
    words = name.split(".")
    for end in range(len(words) - 1, 0, -1):
        prefix = ".".join(words[:end])
        if words[end - 1].isdigit() and list(parts[prefix].children()):
            return prefix
    return ""


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Freeze parameters by prefixes of their names.

    "encoder" freezes the parameters of that module; "!head" freezes all but the model's heads.

    Raises:
        TrainingError: a prefix matches nothing, or nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    tops = sorted({name.partition(".")[0] for name in names})
    kept: list[str] = []
    frozen: list[str] = []
    for prefix in prefixes:
        part = prefix.removeprefix("!")
        meant = [part, *heads(model)] if part == HEAD else [part]
        if not any(_begins(name, meant) for name in names):
            raise TrainingError(
                f"train.freeze: nothing in the model begins with {part!r}{nearest(part, tops)}"
                f"It has {', '.join(tops)}."
            )
        if prefix.startswith("!"):
            kept += meant
        else:
            frozen += meant
    for name, parameter in model.named_parameters():
        if _begins(name, frozen) or (kept and not _begins(name, kept)):
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise TrainingError(
            f"train.freeze = {list(prefixes)} leaves nothing to train. The model has "
            f"{', '.join(tops)}."
        )


def set_frozen_eval(model: nn.Module) -> None:
    """Set frozen modules to evaluation mode: no dropout, fixed running means.

    Modules without parameters (dropout, stochastic depth) follow the module before them.
    """
    for module in model.modules():
        still = False
        for part in module.children():
            parameters = list(part.parameters())
            if parameters:
                still = not any(parameter.requires_grad for parameter in parameters)
            if still:
                part.eval()


def _begins(name: str, parts: Sequence[str]) -> bool:
    """Return whether a parameter is in one of these modules, or is one of them."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)
