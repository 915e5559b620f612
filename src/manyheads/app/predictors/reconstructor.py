"""Models that learned from images alone, for classifiers to start from."""

from manyheads.app.predictors.predictor import Predictor
from manyheads.app.project.folder import ModelFolder
from manyheads.asks.load_options import LoadOptions


class Reconstruction(Predictor):
    """A masked-image model."""

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.preprocessing = folder.preprocessing()
