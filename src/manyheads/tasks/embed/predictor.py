"""Image encoders: a stored model that turns images into vectors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.image_features import feature_tokens
from manyheads.predict.image_inputs import AnImage, ImageInput, ImagePredictor

AT_ONCE = 64  # images in memory


class Embedder(ImagePredictor):
    """Call it with an image, a path, or a list of either: a vector for each."""

    def __call__(self, image: AnImage | list[AnImage] | tuple[AnImage, ...]) -> np.ndarray:
        """Return the vector of one image, or those of several: (image, dim)."""
        if not isinstance(image, list | tuple):
            return self.embed_images([image])[0]
        return self.embed_images(image)

    def embed_images(self, images: Sequence[ImageInput]) -> np.ndarray:
        """Return the pooled vectors of images, as their library gives them: (image, dim)."""
        return self._run(images, self.model)

    def embed_tokens(self, images: Sequence[ImageInput]) -> np.ndarray:
        """Return the vectors of all tokens of images: (image, token, dim), class token first."""
        model: Any = self.model
        return self._run(images, lambda pixels: feature_tokens(model.features(pixels)))

    def _run(self, images: Sequence[ImageInput], run: Callable[[Tensor], Tensor]) -> np.ndarray:
        if not isinstance(images, list | tuple) or not images:
            raise UsageError(f"The images are {images!r:.80}: give a list, also for one alone.")
        device = next(self.model.parameters()).device
        vectors = []
        with self.engine.running(), torch.inference_mode():
            for first in range(0, len(images), AT_ONCE):
                pixels = torch.stack([self.pixels(each) for each in images[first:][:AT_ONCE]])
                normalised = self.preprocessing.normalise(pixels.to(device))
                vectors.append(run(normalised).float().cpu())
        return torch.cat(vectors).numpy()
