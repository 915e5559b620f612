"""What looking shows."""

from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.tasks.read.predictor import Reader


def shapes(predictor: Reader, given: str) -> list[ShapeLine]:
    """Walk through the reading of an image."""
    return walk(predictor.model, lambda: predictor.read([given]))
