"""The protocol of predictors: a stored model that is called with raw input and answers requests."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

from torch import nn

from manyheads.asks.load_options import LoadOptions
from manyheads.engines.engine import Engine, find_engine
from manyheads.errors import UsageError
from manyheads.nn.editing.edits import zeroed

if TYPE_CHECKING:
    from manyheads.asks.request import Request
    from manyheads.data.images.image_set import Preprocessing
    from manyheads.project.folder import ModelFolder


Q = TypeVar("Q", contravariant=True)
A = TypeVar("A")


class OutputClasses(NamedTuple):
    """What the logits of a classifier stand for."""

    names: list[str]
    multi_label: bool = False  # each class has a probability of its own


class Predictor(Protocol):
    """A stored model, ready to be called. `model` is the torch module, `folder` its folder."""

    request: ClassVar[type["Request"] | None] = None
    """What `answer` takes; None: it answers no requests."""

    zero_shot: ClassVar[bool] = False
    """Whether it classifies by words: a `ClassifyRequest` names the classes."""

    documents: ClassVar[bool] = False
    """Whether it is a `TextTranslator` (documents/fallbacks.py), which documents need."""

    page: ClassVar[Literal["classify", "caption", "translate"] | None] = None
    """The program of an exported page that does the same with the model; None: there is none."""

    folder: "ModelFolder"
    engine: Engine
    model: nn.Module

    def __init__(self, folder: "ModelFolder", options: LoadOptions = LoadOptions()) -> None:
        self.folder = folder
        self.engine = find_engine(options.engine)(options.device, options.threads)
        self.model = self.engine.load(folder, options.image_size)

    @classmethod
    def image_input(cls, folder: "ModelFolder") -> "Preprocessing | None":  # noqa: ARG003
        """Return what is done to images of one size; None: the model does not read any."""
        return None

    @classmethod
    def output_classes(cls, folder: "ModelFolder") -> OutputClasses | None:  # noqa: ARG003
        """Return what the logits of a stored model stand for; None: they are not of classes."""
        return None

    @classmethod
    def positions(cls, recipe: Any) -> int:  # noqa: ARG003
        """Return the most positions that it asks of a model, for an export to have as many."""
        return 0

    def __call__(self, given: Any, /) -> object:
        """Answer raw input: a text, an image, a path, or a list of them."""
        raise UsageError(f"{self.folder.name} cannot be called.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.folder.name}, {self.folder.recipe.task}>"

    def answer(self: "Answering[Q, A]", request: Q) -> list[A]:
        """Answer a request: one answer for each of its inputs, in the same order.

        A type checker knows the answers by the class's `respond`.

        Raises:
            UsageError: a request of another type, or one that this model cannot answer.
        """
        own: Any = self
        if own.request is None or not isinstance(request, own.request):
            takes = "no requests" if own.request is None else f"a {own.request.__name__}"
            raise UsageError(
                f"{own.folder.name} answers {takes}, not {request!r:.80}: its task is "
                f"{own.folder.recipe.task!r}."
            )
        with zeroed(getattr(request, "without", ())):
            return self.respond(request)

    def respond(self, request: Any) -> list[Any]:
        """Answer a request of the right type."""
        raise NotImplementedError


class Answering(Protocol[Q, A]):
    """What `answer` asks of a predictor: requests of one type give answers of one type."""

    def respond(self, request: Q) -> list[A]:
        """Answer a request of the right type."""
        ...


def text_positions(max_length: int) -> int:
    """Return the most positions for texts of so many tokens in training.

    A translator reads sources twice as long as in training, and writes twice as much as it reads.
    """
    return 4 * max_length + 64


def answers(predictor: Predictor, request: type["Request"]) -> bool:
    """Tell whether a predictor answers requests of this type."""
    return predictor.request is not None and issubclass(request, predictor.request)
