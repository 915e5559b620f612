"""Which layer a parameter belongs to, and which parameters stay as they are.

Layers are read off the names: a numbered module ("encoder.blocks.3", "stages.1.blocks.0") is one
layer, what is registered before the first is layer 0, what comes behind the last (norm, head) is
the top. So this holds for every model whose blocks are registered in the order of their use.
"""

from collections.abc import Sequence

from torch import nn

from manyheads.errors import TrainingError, nearest


def depths(model: nn.Module) -> dict[str, int]:
    """Number the layers from the input (0) to the output; each parameter's by its name."""
    names = [name for name, _ in model.named_parameters()]
    layers = [_layer(name) for name in names]
    last = max((place for place, layer in enumerate(layers) if layer), default=-1)
    found: dict[str, int] = {}
    depth, current = 0, ""
    for place, (name, layer) in enumerate(zip(names, layers, strict=True)):
        if layer and layer != current:
            depth, current = depth + 1, layer
        found[name] = depth if place <= last else depth + 1
    return found


def _layer(name: str) -> str:
    """Return the name of the numbered module that a parameter lies in; "" if in none.

    Of numbered modules directly in a numbered one ("stages.1.blocks.0") the inner one counts.
    """
    parts = name.split(".")
    numbered = [place for place, part in enumerate(parts) if part.isdigit()]
    if not numbered:
        return ""
    end = numbered[0]
    if end + 2 in numbered:
        end += 2
    return ".".join(parts[: end + 1])


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Exclude parameters from training by the beginnings of their names.

    "encoder" freezes what begins with it; "!head" freezes everything else.

    Raises:
        TrainingError: a beginning fits nothing, or nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    tops = sorted({name.partition(".")[0] for name in names})
    for prefix in prefixes:
        if not any(_begins(name, prefix.removeprefix("!")) for name in names):
            raise TrainingError(
                f"train.freeze: nothing in the model begins with {prefix.removeprefix('!')!r}"
                f"{nearest(prefix.removeprefix('!'), tops)}It has {', '.join(tops)}."
            )
    kept = [prefix.removeprefix("!") for prefix in prefixes if prefix.startswith("!")]
    frozen = [prefix for prefix in prefixes if not prefix.startswith("!")]
    for name, parameter in model.named_parameters():
        out = any(_begins(name, prefix) for prefix in frozen)
        spared = not kept or any(_begins(name, prefix) for prefix in kept)
        if out or not spared:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise TrainingError(
            f"train.freeze = {list(prefixes)} leaves nothing to train. The model has "
            f"{', '.join(tops)}."
        )


def rest(model: nn.Module) -> None:
    """Let frozen parts work as they will later: no dropout, running means as they are."""
    for module in model.modules():
        parameters = list(module.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
            module.eval()


def _begins(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")
