"""The shared part of predictors that read images of one size."""

from dataclasses import replace

import torch
from torch import Tensor

from manyheads.asks.load_options import LoadOptions
from manyheads.data.images.image_file import naming
from manyheads.data.images.image_set import Preprocessing
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.image_inputs import ImageInput, named, opened
from manyheads.project.folder import ModelFolder


class ImagePredictor(Predictor):
    """A predictor whose model reads preprocessed pixels."""

    @classmethod
    def image_input(cls, folder: ModelFolder) -> Preprocessing:
        """That of its folder."""
        return folder.preprocessing()

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.preprocessing = self.image_input(folder)
        if (size := options.image_size) is not None:
            self.preprocessing = replace(self.preprocessing, height=size[0], width=size[1])

    def pixels(self, image: ImageInput) -> Tensor:
        """Preprocess an image as in training: (channel, height, width), 0..255."""
        content = opened(image)
        with naming(named(image)):  # other channels than the model's
            return torch.from_numpy(self.preprocessing.pixels(content).copy())
