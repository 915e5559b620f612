"""The pixels of a set of images, and the outputs of a model for them."""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.data.images.image_set import ImageSet, Preprocessing, in_threads

IN_MEMORY = 2 << 30  # bytes of pixels kept; a larger set is read from disk again each epoch
ROWS = 256  # images per forward pass


class Pixels:
    """The preprocessed pixels of a set, cached if they fit into memory."""

    def __init__(self, images: ImageSet, preprocessing: Preprocessing) -> None:
        self.images = images
        self.preprocessing = preprocessing
        shape = (preprocessing.channels, preprocessing.height, preprocessing.width)
        fits = len(images) * int(np.prod(shape)) <= IN_MEMORY
        self._known = np.zeros(len(images) if fits else 0, dtype=bool)
        self._pixels = np.empty((len(self._known), *shape), dtype=np.uint8)

    def __getitem__(self, indices: np.ndarray) -> Tensor:
        """Return pixels (image, channel, height, width), 0..255."""
        if not len(self._known):
            return torch.from_numpy(np.stack(self._read(indices)))
        new = indices[~self._known[indices]]
        for index, pixels in zip(new, self._read(new), strict=True):
            self._pixels[index] = pixels
            self._known[index] = True
        return torch.from_numpy(self._pixels[indices])

    def _read(self, indices: np.ndarray) -> list[np.ndarray]:
        read = partial(self.images.pixels, preprocessing=self.preprocessing)
        return list(in_threads(read, indices.tolist()))


@torch.inference_mode()
def predict_logits(model: nn.Module, preprocessing: Preprocessing, pixels: Tensor) -> Tensor:
    """Return logits (image, class) for pixels (image, channel, height, width)."""
    device = next(model.parameters()).device
    parts = (preprocessing.normalise(part.to(device)) for part in pixels.split(ROWS))
    return torch.cat([model(part).float() for part in parts]).cpu()


def predict_all_logits(model: nn.Module, pixels: Pixels, *, mirrored: bool = False) -> Tensor:
    """Return the logits (image, class) of a whole set, computed in batches.

    If `mirrored`, those of each image and its mirror image are averaged.
    """
    parts = (pixels[part.numpy()] for part in torch.arange(len(pixels.images)).split(ROWS))
    predict = partial(predict_logits, model, pixels.preprocessing)
    return torch.cat(
        [(predict(p) + predict(p.flip(3))) / 2 if mirrored else predict(p) for p in parts]
    )
