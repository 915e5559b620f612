"""Whether memory suffices for a model, found out from its shapes before it is built."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from manyheads.errors import FolderError, OutOfMemoryError
from manyheads.memory import available_memory

FACTORIES: tuple[Callable[..., Any], ...] = (
    *(torch.empty, torch.zeros, torch.ones, torch.full, torch.tensor, torch.eye),
    *(torch.arange, torch.linspace, torch.rand, torch.randn),
)
IN_PLACE = ("uniform_", "normal_", "fill_", "zero_", "erfinv_", "clamp_", "mul_", "add_")
TRAINED = 4  # a weight, its gradient, and two moments of the optimizer


class ShapesOnly(TorchFunctionMode):
    """Build models without their values: every tensor is on the meta device, no weight is drawn.

    Unlike `torch.device("meta")`, also where a device is named.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        named = dict(kwargs or {})
        if getattr(func, "__module__", "") == "torch.nn.init" or func.__name__ in IN_PLACE:
            return args[0] if args else named["tensor"]
        return func(*args, **named | ({"device": "meta"} if func in FACTORIES else {}))


def check_memory(build: Callable[[], object]) -> None:
    """Refuse to train the model that `build` makes if memory does not suffice for it.

    Raises:
        OutOfMemoryError: it is too large; the message names its largest tensor.
    """
    available = available_memory()
    if available is None:
        return
    try:
        with ShapesOnly():
            model = build()
    except RuntimeError as error:
        if "overflow" in str(error):
            raise OutOfMemoryError(
                "The model is larger than any memory: lower the sizes in [model]."
            ) from None
        return  # the model computes with its weights while it is built: not known before
    if not isinstance(model, nn.Module):
        return  # refused when it is built
    tensors = [*model.named_parameters(), *model.named_buffers()]
    needed = sum(t.nbytes * (TRAINED if t.requires_grad else 1) for _, t in tensors)
    if needed > available:
        largest, tensor = max(tensors, key=lambda each: each[1].nbytes)
        raise OutOfMemoryError(
            f"Training the model needs {needed / 2**30:,.1f} GiB for its weights, their gradients "
            f"and the optimizer, and {available / 2**30:,.1f} GiB are free. Its largest tensor is "
            f"{largest} {tuple(tensor.shape)}: lower the sizes in [model] that it has, the "
            "vocabulary, or the image size."
        )


@contextmanager
def at_most(parameters: int) -> Iterator[None]:
    """Stop building a model that has more parameters than this, before they take up memory."""
    total, thread = 0, threading.get_ident()

    def count(_module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal total
        if threading.get_ident() != thread:  # torch calls it for models of all threads
            return
        total += 0 if parameter is None else parameter.numel()
        if total > parameters:
            raise FolderError(
                "The recipe describes a larger model than the weights belong to (the excess was "
                f"found at {name}). Copy the folder again."
            )

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()
