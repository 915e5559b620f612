"""Load a stored model as the predictor of its task."""

from pathlib import Path
from typing import TypeVar

from manyheads.app.pipeline import pipeline_of
from manyheads.app.predictors.predictor import LoadOptions, Predictor
from manyheads.app.project.folder import ModelFolder
from manyheads.app.project.paths import find_model
from manyheads.data.images.image_set import MOST_PIXELS
from manyheads.errors import UsageError

P = TypeVar("P", bound=Predictor)


def load(
    model: str | Path,
    *,
    image_size: int | tuple[int, int] | None = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Predictor:
    """Load a shipped model by name, or a model folder by path.

    Args:
        model: the name or the path.
        image_size: of an image classifier, in place of the size it was trained for: one number,
            or height and width. Learned positions are interpolated.
        engine: what runs the model.
        device: such as "cpu" or "cuda:0"; the best there is if None.
        threads: of a CPU; if None, one for small models (see `inference_threads`).

    Raises:
        NotFoundError: there is no such model.
        FolderError: the folder is damaged, incomplete, or of a later version.
        UsageError: the model cannot have this image size; no such engine or device.
    """
    folder = ModelFolder(find_model(str(model)))
    size = image_size if isinstance(image_size, tuple | None) else (image_size, image_size)
    if size is not None and not (
        len(size) == 2 and all(type(each) is int and 1 <= each <= MOST_PIXELS for each in size)
    ):
        raise UsageError(
            f"image_size is {image_size!r}: give one number of pixels or two, height and width, "
            f"from 1 to {MOST_PIXELS:,}."
        )
    options = LoadOptions(engine=engine, device=device, threads=threads, image_size=size)
    if size is not None and folder.recipe.data.medium != "images":
        raise UsageError(f"{model} does not look at images: it takes no image_size.")
    return pipeline_of(folder.recipe).load(folder, options)


def load_as(
    kind: type[P],
    model: str | Path,
    *,
    verb: str,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> P:
    """Load a model that must be of one kind.

    Args:
        kind: of predictor.
        model: the name or the path.
        verb: what it has to do, for the message: "translate".
        engine: as for `load`; likewise the next two.
        device: such as "cpu".
        threads: of a CPU.

    Raises:
        UsageError: it is of another kind.
    """
    predictor = load(model, engine=engine, device=device, threads=threads)
    if not isinstance(predictor, kind):
        recipe = predictor.folder.recipe
        use = pipeline_of(recipe).card(predictor.folder).use
        raise UsageError(f"{model} does not {verb}: its task is {recipe.task!r}, so use `{use}`.")
    return predictor
