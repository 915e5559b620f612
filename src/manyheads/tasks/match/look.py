"""What looking shows."""

from pathlib import Path

from manyheads.data.images.image_file import SUFFIXES
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.tasks.match.predictor import Matcher


def shapes(predictor: Matcher, given: str) -> list[ShapeLine]:
    """Walk through the vector of an image, if it is the path of one, or else of a text."""
    if Path(given).suffix.lower() in SUFFIXES:
        return walk(predictor.model, lambda: predictor.embed_images([given]))
    return walk(predictor.model, lambda: predictor.embed_texts([given]))
