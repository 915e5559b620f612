"""Public names, for type checkers and editors; programs import each when it is used."""

from pathlib import Path
from typing import Literal, TypeVar, overload

from PIL.Image import Image

from manyheads.asks.evaluate_request import TextMetric
from manyheads.engine_export import export
from manyheads.errors import InputWarning, ManyheadsError
from manyheads.fit.run_training import train
from manyheads.image_search.image_index import ImageIndex, index, search
from manyheads.looking.look_inside import Look
from manyheads.measure.score import Line
from manyheads.models.presets import build, preset, register_preset
from manyheads.nn.editing.edits import edit
from manyheads.nn.recording.trace import record
from manyheads.picture_translation import read
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.task_pipeline import Pipeline
from manyheads.project.registry import register_task
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.embed.predictor import Embedder
from manyheads.tasks.fill.predictor import MaskFiller
from manyheads.tasks.generate.predictor import Generator
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.tag.predictor import WordSpacer
from manyheads.tasks.translate.predictor import Translator
from manyheads.version import __version__

__all__ = ["Captioner", "Classifier", "Embedder", "Generator", "ImageIndex", "InputWarning"]
__all__ += ["ManyheadsError", "MaskFiller", "Matcher", "Pipeline", "Predictor", "Reader"]
__all__ += ["Translator", "WordSpacer", "__version__", "build", "edit", "evaluate", "export"]
__all__ += ["index", "load", "look", "preset", "read", "record", "register_preset"]
__all__ += ["register_task", "search", "train"]

# What the implementations take as parameters of a request, written out; a test compares them.

P = TypeVar("P", bound=Predictor)
Size = int | tuple[int, int] | None

@overload
def load(
    model: Literal["emoji-caption"],
    kind: None = None,
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Captioner: ...
@overload
def load(
    model: Literal["cifar10-cct-2-3x2", "digits"],
    kind: None = None,
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Classifier: ...
@overload
def load(
    model: Literal["emoji-search", "icon-search"],
    kind: None = None,
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Matcher: ...
@overload
def load(
    model: Literal["read-ko"],
    kind: None = None,
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Reader: ...
@overload
def load(
    model: Literal[
        "date-en-ko",
        "de-en",
        "en-de",
        "en-fr",
        "en-ko",
        "enko-en-ko",
        "enko-ko-en",
        "ko-en",
        "multi30k-en-de",
        "multi30k-en-de-distil",
    ],
    kind: None = None,
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Translator: ...
@overload
def load(
    model: Literal["korean-spacing-lstm"],
    kind: None = None,
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> WordSpacer: ...
@overload
def load(
    model: str | Path,
    kind: type[P],
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> P: ...
@overload
def load(
    model: str | Path,
    kind: None = None,
    *,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Predictor: ...
def look(
    model: str | Path | Predictor,
    given: str | Path | Image,
    *,
    kind: Literal["text", "image"] | None = None,
    untrained: bool = False,
    without: list[str] | tuple[str, ...] = (),
    uniform: list[str] | tuple[str, ...] = (),
    target: str | None = None,
    baseline: Literal["black", "mean", "blur"] = "black",
    integrated: bool | None = False,
    language: str | None = None,
    reference: str | None = None,
    prefix: str = "",
    instead: str | None = None,
    why: str | None = None,
    why_not: str | None = None,
    word: str | None = None,
    also: list[str] | tuple[str, ...] = (),
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Look: ...
def evaluate(
    model: str | Path | Predictor,
    *,
    data: str | None = None,
    remote: bool = False,
    split: str = "valid",
    final: bool = False,
    limit: int | None = None,
    metrics: list[TextMetric] | tuple[TextMetric, ...] = (),
    by_length: bool = False,
    group: str | None = None,
    references: str | None = None,
    timing: bool = False,
    alignment: bool = False,
    among: str | None = None,
    mirrored: bool = False,
    outputs: str | Path | None = None,
    image_size: Size = None,
    engine: str = "torch",
    device: str | None = None,
    threads: int | None = None,
) -> Line: ...
