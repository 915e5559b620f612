"""What a task is, whole: the interface that each folder in `tasks/` implements.

Training, evaluating, looking and examining ask a recipe's pipeline and know no task by name.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from torch import Tensor, nn

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.errors import UsageError
from manyheads.predict.base_predictor import Predictor
from manyheads.project.base_recipe import Recipe
from manyheads.project.registry import find_task

if TYPE_CHECKING:
    from manyheads.asks.export_request import ParityRequest
    from manyheads.asks.load_options import LoadOptions
    from manyheads.asks.look_request import LookRequest
    from manyheads.data.images.image_set import ImageSet
    from manyheads.engines.engine_parity import Parity
    from manyheads.lens.trace.module_shapes import ShapeLine
    from manyheads.lens.view.image_view import ImageView
    from manyheads.lens.view.text_view import TextView
    from manyheads.models.model_config import ModelConfig
    from manyheads.project.folder import ModelFolder
    from manyheads.train.training_task import Task

Say = Callable[[str], None]  # tells the user what happens


class Prepared(NamedTuple):
    """What a run needs before its model."""

    task: "Task[Any]"
    config: "ModelConfig"
    write_inputs: Callable[[Path], None]  # writes the tokenizer, or preprocessing and labels
    # What a resumed run should find again: sha256 of the data, and of a teacher's folder.
    environment: dict[str, str]


class Section(NamedTuple):
    """What a model card says about the task."""

    what: str
    use: str  # a command
    limits: str = (
        "Trained on the data named above and nothing else; expect little on input unlike it."
    )


TRAINED_ELSEWHERE = "Trained elsewhere; its makers know on what, and what to expect."


class Explanation(NamedTuple):
    """What looking at one input shows."""

    told: dict[str, str]  # what was given and came out: texts, or a path
    view: "TextView | ImageView"
    pixels: Tensor | None = None  # of an image: (height, width) or (height, width, 3), 0..255


R = TypeVar("R", bound=Recipe)
P = TypeVar("P", bound=Predictor)


class Pipeline(Generic[R, P]):
    """One task. `prepare` and `load` must be there; the rest has defaults that refuse politely.

    A task of the package has its parts in modules of its folder (`home`), named by their role and
    imported when they are first needed: translating imports nothing that trains or measures.
    """

    task: ClassVar[str]  # as recipes name it
    home: ClassVar[str] = ""  # package whose modules have the parts
    looks: ClassVar[bool] = False  # whether it explains answers; a class with a `look` does
    recipe: ClassVar[type[Recipe]]
    predictor: ClassVar[type[Predictor]]
    what: ClassVar[str] = "A model of a task from outside the package."  # for the model card
    use: ClassVar[str] = "manyheads evaluate --model {name}"  # a command, for the model card
    # What the task asks of a model: positional arguments of `forward`, methods and attributes.
    forward: ClassVar[tuple[str, ...]] = ("inputs",)
    members: ClassVar[tuple[str, ...]] = ()
    # Files that only this task writes beside the weights; they are checked like those of all.
    files: ClassVar[tuple[str, ...]] = ()

    def prepare(self, recipe: R, out: Path, say: Say) -> Prepared:
        """Read a recipe's data; take the tokenizer from the run folder `out`, if it is there.

        Raises:
            NotFoundError: data are missing.
            DataError: data cannot be used.
            UsageError: data are a test split.
        """
        return self.part("preparation", "prepare")(recipe, out, say)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.looks = cls.looks or cls.look is not Pipeline.look

    def __init__(self) -> None:
        if type(self).prepare is Pipeline.prepare and not self.home:
            raise TypeError(f"{type(self).__name__} lacks the method prepare")

    def part(self, role: str, function: str) -> Any:
        """Import a function of the module of a part; None if the task has none."""
        known = self.home and find_spec(f"{self.home}.{role}")
        return getattr(import_module(f"{self.home}.{role}"), function, None) if known else None

    def build(self, recipe: R, config: "ModelConfig") -> nn.Module:
        """Build the model as it is trained, with fresh weights from torch's generator.

        Raises:
            UsageError: a model from outside cannot be called as this task calls it.
        """
        model = config.build()
        if not isinstance(model, nn.Module):
            raise UsageError(
                f"{type(config).__name__}.build() returned {type(model).__name__}, not a torch "
                "nn.Module: let it return the model."
            )
        lacks = [name for name in self.members if not hasattr(model, name)]
        try:
            inspect.signature(model.forward).bind(*self.forward)
        except TypeError:
            lacks.insert(0, f"forward({', '.join(self.forward)})")
        if lacks:
            raise UsageError(
                f"{type(model).__name__} cannot be trained for the task {self.task!r}: it lacks "
                f"{', '.join(lacks)}. The table of docs/extending.md says what each is for."
            )
        return model

    def initialize(self, model: nn.Module, recipe: R, out: Path) -> dict[str, Any] | None:
        """Start a new model from trained weights, as the recipe asks.

        Returns:
            For each side of the model: `model`, `sha256` and the `tensors` that were copied; None
            if all weights are fresh.
        """
        initialize = self.part("initialize", "initialize")
        return initialize(model, recipe, out) if initialize else None

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor] | None:
        """Name weights as those of a classifier that starts from them; None: none can."""
        return None

    def load(self, folder: "ModelFolder", options: "LoadOptions") -> P:
        """Make the predictor of a stored model."""
        return cast(type[P], self.predictor)(folder, options)

    def evaluate(self, predictor: P, request: EvaluateRequest) -> dict[str, Any]:
        """Measure a stored model; return the line for its log (see `measure/score.py`)."""
        if evaluate := self.part("evaluation", "evaluate"):
            return evaluate(predictor, request)
        raise UsageError(f"{predictor.folder.name}: the task {self.task!r} has no evaluation.")

    def parity(self, reference: P, exported: P, request: "ParityRequest") -> "Parity":
        """Compare an engine with torch on the same inputs, before an export is kept.

        Args:
            reference: the model on torch.
            exported: the same model on the engine.
            request: what to compare on.
        """
        return self.part("evaluation", "parity")(reference, exported, request)

    def check_compared(self, folder: "ModelFolder") -> None:
        """Refuse to export a model of a task that has no `parity`.

        Raises:
            UsageError: it has none.
        """
        if type(self).parity is Pipeline.parity and not self.part("evaluation", "parity"):
            raise UsageError(
                f"{folder.name}: engines are not compared for the task {self.task!r}, so nothing "
                "of it can be exported."
            )

    def after_training(self, predictor: P) -> EvaluateRequest:
        """Choose what to measure when training is over."""
        asked = self.part("evaluation", "after_training")
        return asked(predictor) if asked else EvaluateRequest()

    def validation_images(self, recipe: R) -> "ImageSet":
        """Read the images of the validation data, to calibrate an export on.

        Raises:
            NotFoundError: they are not here.
            UsageError: the task has none.
        """
        if read := self.part("preparation", "validation_images"):
            return read(recipe)
        raise UsageError(f"the task {self.task!r} has no images.")

    def card(self, folder: "ModelFolder") -> Section:
        """Describe a model and its use for its card."""
        return Section(self.what, self.use.format(name=folder.name))

    def look(self, predictor: P, request: "LookRequest") -> Explanation:
        """Run a model on one input with a recorder open."""
        if look := self.part("look", "look"):
            return look(predictor, request)
        raise UsageError(f"{predictor.folder.name}: there is nothing to look at in {self.task!r}.")

    def shapes(self, predictor: P, given: str) -> list["ShapeLine"]:
        """List the parts that one input passes through, with the shapes that go in and out."""
        if shapes := self.part("look", "shapes"):
            return shapes(predictor, given)
        raise UsageError(f"{predictor.folder.name}: there is nothing to look at in {self.task!r}.")

    def samples(self, recipe: R, run: Any) -> Any:
        """Read some of a run's data for `doctor`; None: it looks at none.

        Args:
            recipe: of the run.
            run: its folder, a `RunInspection`.

        Returns:
            `Samples` (doctor/run_batches.py).

        Raises:
            ManyheadsError: the data are not there, or cannot be used.
        """
        samples = self.part("samples", "samples")
        return samples(recipe, run) if samples else None

    def against_overfitting(self, recipe: R) -> dict[str, object]:
        """Suggest recipe keys against overfitting, besides dropout and early stopping."""
        return {}

    def against_memorising(self, recipe: R) -> dict[str, object]:
        """Suggest recipe keys where training data are known by heart, besides dropout."""
        return {}


def pipeline_of(recipe: Recipe) -> Pipeline[Any, Any]:
    """Return the pipeline of a recipe's task."""
    return cast(Pipeline[Any, Any], find_task(recipe.task))
