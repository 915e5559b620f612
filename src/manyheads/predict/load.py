"""Load a stored model as the predictor of its task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.request import Request
from manyheads.errors import UsageError
from manyheads.models.resize import reads_images
from manyheads.predict.base_predictor import Predictor, answers
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model


# What `kind` says to type checkers is in the stub of the package, `__init__.pyi`.
def load(
    model: str | Path,
    kind: type[Predictor] | None = None,
    *,
    image_size: int | tuple[int, int] | None = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Predictor:
    """Load a shipped model by name, a model of the hub by hf:USER/MODEL, or a folder by path.

    Args:
        model: the name or the path; what is not here of the hub is fetched.
        kind: the class that it must be, such as `manyheads.Translator`: a type checker then knows
            what it is called with and what it answers.
        image_size: of images, in place of the size that the model was trained for: one number, or
            height and width. Learned positions are interpolated.
        engine: what runs the model.
        device: such as "cpu" or "cuda:0"; the best there is if None.
        threads: of a CPU; if None, one for small models (see `inference_threads`).

    Raises:
        NotFoundError: there is no such model.
        FolderError: the folder is damaged, incomplete, or of a later version.
        UsageError: the model is of another class or cannot have this image size; no such engine or
            device.
    """
    if not isinstance(model, str | Path):
        raise UsageError(f"`model` is {model!r}: give the name of a shipped model, or a folder.")
    size: Any = image_size
    options = LoadOptions(engine=engine, device=device, threads=threads, image_size=size)
    folder = ModelFolder(find_model(str(model)))
    if options.image_size is not None and not reads_images(folder.recipe.config()):
        raise UsageError(f"{model} does not look at images of one size: it takes no image_size.")
    pipeline = pipeline_of(folder.recipe)
    if kind is not None and not (isinstance(kind, type) and issubclass(pipeline.predictor, kind)):
        asked = getattr(kind, "__name__", repr(kind))
        raise UsageError(
            f"{model} is no {asked}: its task is {folder.recipe.task!r}, so its class is "
            f"{pipeline.predictor.__name__}. Leave `kind` out, or name another model."
        )
    return pipeline.load(folder, options)


@dataclass(frozen=True)
class LoadVersion:
    """Loads one version of a model folder, and no other: another process may know this one."""

    path: Path
    version: str  # of `ModelFolder`
    options: Mapping[str, Any] = field(default_factory=dict)  # of `load`

    def __call__(self) -> Predictor:
        """Load it.

        Raises:
            ChangedFolderError: the folder is another version, or was changed meanwhile.
        """
        predictor = load(self.path, **self.options)
        predictor.folder.check_version(self.version)
        return predictor


def load_for(request: type[Request], model: str | Path, *, verb: str, **options: Any) -> Predictor:
    """Load a model that must answer requests of one type.

    Args:
        request: the type.
        model: the name or the path.
        verb: what it has to do, for the message: "translate".
        options: those of `load`.

    Raises:
        UsageError: it answers others.
    """
    predictor = load(model, **options)
    if not answers(predictor, request):
        recipe = predictor.folder.recipe
        use = pipeline_of(recipe).card(predictor.folder).use
        raise UsageError(f"{model} does not {verb}: its task is {recipe.task!r}, so use `{use}`.")
    return predictor


def loaded(
    model: str | Path | Predictor, parameters: Mapping[str, Any]
) -> tuple[Predictor, dict[str, Any]]:
    """Load a model with its part of some parameters; return it and the others.

    What `load` returned is taken as it is.

    Raises:
        UsageError: as `load`; parameters of `load` for a model that is loaded already.
    """
    options = {name: each for name, each in parameters.items() if name in LoadOptions.model_fields}
    others = {name: each for name, each in parameters.items() if name not in options}
    if isinstance(model, str | Path) or not hasattr(model, "folder"):
        return load(model, **options), others  # type: ignore[arg-type] # refused there
    if options:
        name = next(iter(options))
        raise UsageError(f"{model.folder.name} is loaded: give `{name}` when you load it.")
    return model, others
