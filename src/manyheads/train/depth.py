"""Which layer a parameter belongs to, and which parameters stay as they are.

Layers are read off the names: a numbered module with parts of its own ("encoder.blocks.3",
"stages.1.0") is one layer, what is registered before the first is layer 0, what comes behind the
last (norm, head) is the top. So this holds for every model whose blocks are registered in the order
of their use; pools that learn and heads are the top wherever they are registered.
"""

from collections.abc import Mapping, Sequence

from torch import nn

from manyheads.errors import TrainingError, nearest
from manyheads.nn.head import Top, heads

HEAD = "head"  # in train.freeze: every head that the model has


def depths(model: nn.Module) -> dict[str, int]:
    """Number the layers from the input (0) to the output; each parameter's by its name."""
    parts = dict(model.named_modules())
    names = [name for name, _ in model.named_parameters()]
    layers = [_layer(name, parts) for name in names]
    last = max((place for place, layer in enumerate(layers) if layer), default=-1)
    found: dict[str, int] = {}
    depth, current = 0, ""
    for place, (name, layer) in enumerate(zip(names, layers, strict=True)):
        if layer and layer != current:
            depth, current = depth + 1, layer
        found[name] = depth if place <= last else depth + 1
    tops = [name for name, part in parts.items() if isinstance(part, Top)]
    return found | {name: depth + 1 for name in names if _begins(name, tops)}


def _layer(name: str, parts: Mapping[str, nn.Module]) -> str:
    """Return the name of the layer that a parameter lies in; "" if in none.

    It is the innermost numbered module that has parts: of "stages.1.0.end.1.gain" the block, not
    the stage, and not the gain.
    """
    words = name.split(".")
    for end in range(len(words) - 1, 0, -1):
        prefix = ".".join(words[:end])
        if words[end - 1].isdigit() and list(parts[prefix].children()):
            return prefix
    return ""


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Exclude parameters from training by the beginnings of their names.

    "encoder" freezes what begins with it; "!head" freezes everything but the model's heads.

    Raises:
        TrainingError: a beginning fits nothing, or nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    tops = sorted({name.partition(".")[0] for name in names})
    for prefix in prefixes:
        if not any(_begins(name, _meant(model, prefix)) for name in names):
            raise TrainingError(
                f"train.freeze: nothing in the model begins with {prefix.removeprefix('!')!r}"
                f"{nearest(prefix.removeprefix('!'), tops)}It has {', '.join(tops)}."
            )
    kept = [each for p in prefixes if p.startswith("!") for each in _meant(model, p)]
    frozen = [each for p in prefixes if not p.startswith("!") for each in _meant(model, p)]
    for name, parameter in model.named_parameters():
        if _begins(name, frozen) or (kept and not _begins(name, kept)):
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise TrainingError(
            f"train.freeze = {list(prefixes)} leaves nothing to train. The model has "
            f"{', '.join(tops)}."
        )


def rest(model: nn.Module) -> None:
    """Let frozen parts work as they will later: no dropout, running means as they are.

    What has no parameters (dropout, stochastic depth) rests with the part in front of it.
    """
    for module in model.modules():
        still = False
        for part in module.children():
            parameters = list(part.parameters())
            if parameters:
                still = not any(parameter.requires_grad for parameter in parameters)
            if still:
                part.eval()


def _meant(model: nn.Module, prefix: str) -> list[str]:
    """Return the names of parts that an entry of train.freeze stands for."""
    name = prefix.removeprefix("!")
    return [name, *heads(model)] if name == HEAD else [name]


def _begins(name: str, parts: Sequence[str]) -> bool:
    """Say whether a parameter lies in one of these parts, or is one of them."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)
