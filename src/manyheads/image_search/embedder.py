"""What an index needs of a model: vectors of images and of texts in one space."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from manyheads.data.images.image_file import ImageContent
from manyheads.errors import UsageError
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.load import load
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import shipped
from manyheads.project.registry import TASKS, find_task

TOLERANCE = 1e-3  # how much the length of a vector may differ from 1


@runtime_checkable
class Embedder(Protocol):
    """A stored model that turns images and texts into vectors of unit length."""

    folder: ModelFolder

    def embed_images(self, images: Sequence[str | Path | ImageContent]) -> np.ndarray:
        """Return a vector of each image: (image, dim) float32."""

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return a vector of each text: (text, dim) float32."""


def load_embedder(model: str | Path | Predictor | Embedder, **options: Any) -> Embedder:
    """Load a model that embeds images and texts; take one that is loaded as it is.

    Raises:
        UsageError: the model does not; the message names models that do.
    """
    found = load(model, **options) if isinstance(model, str | Path) else model
    if isinstance(found, Embedder):
        return found
    folder = getattr(found, "folder", None)
    if not isinstance(folder, ModelFolder):
        raise UsageError(f"`model` is {model!r:.80}: give the name of a model, or a folder.")
    use = pipeline_of(folder.recipe).card(folder).use
    raise UsageError(
        f"{folder.name} cannot be searched with: it has no vectors of images and texts. Its task "
        f"is {folder.recipe.task!r}, so use `{use}`. {_fitting()}"
    )


def _fitting() -> str:
    """Name the tasks and the shipped models that embed."""
    # Not `issubclass`: the protocol has a member that only objects have.
    members = {"embed_images", "embed_texts"}
    tasks = [name for name in TASKS if members <= {*dir(find_task(name).predictor)}]
    models = [
        name
        for name, manifest in shipped("pretrained").items()
        if ModelFolder(manifest.parent).recipe.task in tasks
    ]
    named = ", ".join(map(repr, tasks)) or "none"
    return f"Tasks whose models can: {named}; shipped models: {', '.join(models) or 'none'}."


def check_vectors(vectors: np.ndarray, shape: tuple[int, int | None], embedder: Embedder) -> None:
    """Refuse vectors of another shape, where it is known, or of another length than 1.

    Vectors that are not finite are left to the caller: that may be the image's fault.

    Raises:
        UsageError: they are not what the protocol promises.
    """
    if vectors.ndim != 2 or vectors.shape != (shape[0], shape[1] or vectors.shape[1]):
        raise UsageError(
            f"{embedder.folder.name} gave an array of shape {vectors.shape} for {shape[0]} inputs: "
            f"expected is ({shape[0]}, {shape[1] or 'dim'})."
        )
    lengths = np.linalg.norm(vectors, axis=1)
    if (wrong := lengths[np.abs(lengths - 1) > TOLERANCE]).size:
        raise UsageError(
            f"{embedder.folder.name} gave a vector of length {wrong[0]}: expected are vectors of "
            "length 1."
        )


def with_names(images: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the mean of the vectors of each image and of its name, (image, dim), of length 1."""
    means = images + names
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def place_of(embedder: Embedder) -> str:
    """Name a model so that it is found again: a shipped one by its name, others by their path."""
    folder = embedder.folder
    return folder.name if folder.shipped else str(folder.path.absolute())
