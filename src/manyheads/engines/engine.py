"""The engine seam: what runs a stored model, on which device, with how many threads.

torch is the first engine; exports behind the same predictor join it here by name.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Protocol, cast

import torch
from torch import nn

from manyheads.errors import MissingExtraError, UsageError
from manyheads.project.folder import ModelFolder
from manyheads.registration import found, register
from manyheads.train.device import find_device, inference_threads, limited_threads, memory_errors

TOO_LARGE = (
    "Give fewer or shorter inputs at a time, or smaller images; of a search, lower `beams` and "
    "`n_best`."
)


class Engine(Protocol):
    """Loads a stored model and runs it.

    One that is not torch has a `name`, which is logged with what is measured.
    """

    def __init__(self, device: str | None, threads: int | None) -> None:
        """Choose a device and a number of threads; None lets the engine choose."""

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        """Load the weights.

        The result is called like the torch module, and has what the task asks of it: `config`, and
        for a search either the Step protocol or a `search` of its own (`tasks.search.Searcher`).
        """

    def running(self) -> AbstractContextManager[None]:
        """Use the engine's number of threads inside the context."""


class EngineModel(nn.Module):
    """The base of what another engine's `load` returns: a module without weights in torch."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        # Callers make their inputs where the first parameter lies: on the CPU.
        self.place = nn.Parameter(torch.empty(0), requires_grad=False)

    def forward(self, *given: Any, **parameters: Any) -> Any:
        """Refuse: this engine answers only; another may compute what the torch module does."""
        raise UsageError(
            "This engine gives answers and shows nothing of how they came about: for that, load "
            "the model with `engine='torch'`."
        )


class TorchEngine:
    """torch itself: any device it has; on a CPU, small models run on one thread."""

    name = "torch"

    def __init__(self, device: str | None, threads: int | None) -> None:
        self.device = find_device(device)
        self.threads = threads

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        """Build the model, load its weights, move it to the device."""
        model = folder.model(image_size).to(self.device)
        if self.threads is None and self.device.type == "cpu":
            self.threads = inference_threads(model)
        return model

    @contextmanager
    def running(self) -> Iterator[None]:
        """Use the chosen number of threads inside the context."""
        with limited_threads(self.threads), memory_errors(TOO_LARGE):
            yield


class TorchBf16Engine(TorchEngine):
    """As torch, but every weight and what is computed between the layers has 8 bits of mantissa.

    Half the memory, and faster where the processor multiplies bfloat16: docs/engines.md.
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


def _rounded(_layer: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        each.to(torch.bfloat16) if torch.is_tensor(each) and each.is_floating_point() else each
        for each in inputs
    )


# A class, or the module and the name of one, which is imported when it is first asked for.
ENGINES: dict[str, type[Engine] | str] = {
    "torch": TorchEngine,
    "torch-bf16": TorchBf16Engine,
    "ctranslate2": "manyheads.engines.ctranslate2.engine:CTranslate2Engine",
    "onnx": "manyheads.engines.onnx.engine:OnnxEngine",
    "openvino": "manyheads.engines.openvino.engine:OpenVinoEngine",
}


def register_engine(name: str, engine: type[Engine]) -> None:
    """Add an engine: from then on `load(model, engine=name)` runs models on it.

    Raises:
        UsageError: the name is no text, empty, or exists; the object is no class of engines.
    """
    lacks = ["being a class"] * (not isinstance(engine, type))
    lacks += [member for member in ("load", "running") if not hasattr(engine, member)]
    wanted = "An engine is a class with the methods of manyheads.extend.Engine."
    register(ENGINES, "an engine", name, engine, wanted, lacks)


def engine_name(engine: Engine) -> str:
    """Return the name of an engine; one from outside without a name is a kind of torch."""
    return str(getattr(engine, "name", "torch"))


def find_engine(name: str) -> type[Engine]:
    """Look up an engine.

    Raises:
        UsageError: no such engine.
    """
    return cast(type[Engine], found(ENGINES, name, "There is no engine", "Engines"))


def need(packages: Sequence[str], *, extra: str) -> dict[str, str]:
    """Check that packages are installed, and return their versions.

    Raises:
        MissingExtraError: one is not.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package=package, extra=extra)
    return {package: version(package) for package in packages}
