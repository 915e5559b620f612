"""Models that learned from images alone, for classifiers to start from."""

from manyheads.asks.load_options import LoadOptions
from manyheads.predict.base_predictor import Predictor
from manyheads.project.folder import ModelFolder


class Reconstruction(Predictor):
    """A masked-image model."""

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.preprocessing = folder.preprocessing()
