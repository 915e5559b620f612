"""A model of images and texts for the tests of an index: digits, and the words for them.

The vector of an image is the shipped classifier's logits, that of a text the digits that it names.
With DIGIT_SEARCH=1 in the environment it does so as a plugin (`--plugin tests.digit_search`); with
SLOW=0.3 it waits so many seconds before each batch, and the index is committed after each.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from manyheads.data.images.digits import read_digits
from manyheads.data.images.pixels import predict_logits
from manyheads.image_search import index_writer as writer
from manyheads.predict.image_inputs import ImageInput
from manyheads.tasks.classify.predictor import Classifier

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SLOW = float(os.environ.get("SLOW", "0"))


def embed_images(self: Classifier, images: Sequence[ImageInput]) -> np.ndarray:
    """Logits of unit length."""
    time.sleep(SLOW)
    pixels = torch.stack([self.pixels(image) for image in images])
    with self.engine.running():
        logits = predict_logits(self.model, self.preprocessing, pixels).double()
    return (logits / logits.norm(dim=1, keepdim=True)).float().numpy()


def embed_texts(self: Classifier, texts: Sequence[str]) -> np.ndarray:
    """Ones where the word of a digit occurs; all the same where none does."""
    found = np.array([[word in text.split() for word in WORDS] for text in texts], dtype=float)
    found[found.sum(axis=1) == 0] = 1
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def give(patch: Any) -> None:
    """Give the methods to every classifier, until a `monkeypatch` takes them away."""
    patch.setattr(Classifier, "embed_images", embed_images, raising=False)
    patch.setattr(Classifier, "embed_texts", embed_texts, raising=False)


def write_digits(folder: Path, count: int, first: int = 0) -> list[Path]:
    """Write digits as image files, each in a folder named by its class."""
    digits = read_digits()
    paths = []
    for number in range(first, first + count):
        path = folder / digits.classes[digits.labels[number]] / f"{number:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = digits.open(number)
        assert isinstance(image, Image.Image)
        image.save(path)
        paths.append(path)
    return paths


if SLOW:  # as a plugin of another process
    writer.COMMIT = 0.0
if "DIGIT_SEARCH" in os.environ:
    Classifier.embed_images = embed_images  # type: ignore[attr-defined]
    Classifier.embed_texts = embed_texts  # type: ignore[attr-defined]
