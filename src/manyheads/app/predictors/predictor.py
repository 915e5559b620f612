"""What every predictor has: the folder of its model, and the model on an engine."""

from dataclasses import dataclass

from torch import nn

from manyheads.app.engines.engine import Engine, find_engine
from manyheads.app.project.folder import ModelFolder


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a stored model is loaded."""

    engine: str = "torch"
    device: str | None = None  # such as "cpu" or "cuda:0"; the best there is if None
    threads: int | None = None  # of a CPU; chosen by the size of the model if None
    image_size: tuple[int, int] | None = None  # height and width, in place of the trained size


class Predictor:
    """A stored model, ready to be called. `model` is the torch module, `folder` its folder."""

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        self.folder = folder
        self.engine: Engine = find_engine(options.engine)(options.device, options.threads)
        self.model: nn.Module = self.engine.load(folder, options.image_size)
