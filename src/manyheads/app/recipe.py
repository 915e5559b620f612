"""Recipes: typed TOML, every default in one place, every unknown key answered."""

import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, get_args

import tomli_w
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from manyheads.app.paths import endings, here
from manyheads.data.augment import Augmentation
from manyheads.data.characters import PAD as CHARACTER_PAD
from manyheads.data.images import Preprocessing
from manyheads.data.spacing import TAGS
from manyheads.data.tokenizer import END, PAD, START, PairTokenizerConfig, TokenizerConfig
from manyheads.errors import RecipeError, UsageError, nearest
from manyheads.models.causal_lm import CausalConfig
from manyheads.models.language_model import LanguageModelConfig
from manyheads.models.masked_lm import MaskedConfig
from manyheads.models.presets import PRESETS, Config, preset
from manyheads.models.tagger import TaggerConfig
from manyheads.models.vit import VitConfig
from manyheads.tasks.classify import METRICS as CLASSIFY_METRICS
from manyheads.tasks.classify import MULTI_LABEL_METRICS, ClassifyTrainConfig
from manyheads.tasks.decoding import DecodeConfig
from manyheads.tasks.distil import Distil
from manyheads.tasks.language import MASK, FillTrainConfig
from manyheads.tasks.reconstruct import METRICS as RECONSTRUCT_METRICS
from manyheads.tasks.reconstruct import ReconstructTrainConfig
from manyheads.tasks.tag import METRICS as TAG_METRICS
from manyheads.tasks.tokenwise import METRICS as LANGUAGE_METRICS
from manyheads.tasks.tokenwise import TokenTrainConfig
from manyheads.tasks.translate import EvaluateConfig, TranslateTrainConfig


class Table(BaseModel):
    """A table that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TranslateData(Table):
    """The [data] table of a translator; "dates:SPLIT" is generated, everything else is a path."""

    root: str | None = None
    train: str
    valid: str
    test: str | None = None
    source: str
    target: str
    source_column: int | str | None = None  # of a table; None: named by the language, or the first
    target_column: int | str | None = None


class PictureData(Table):
    """The [data] table of what learns from pictures.

    Folders, tables (.csv, .tsv, .jsonl), .parquet and .tar files (a pattern with *), a name on the
    hub, or "digits".
    """

    root: str | None = None
    train: str
    valid: str | None = None  # else hold_out pictures of train
    test: str | None = None
    hold_out: int = Field(default=0, ge=0)
    random_state: int = Field(default=0, ge=0)
    image: str = "image"  # column of a table
    label: str = "label"
    # What to do about a picture that cannot be read: stop there, or leave it out. To leave them out
    # every picture is opened once at the beginning.
    bad: Literal["stop", "skip"] = "stop"


class ClassifyData(PictureData):
    """The [data] table of a classifier."""

    multi_label: bool = False  # any number of classes a picture
    separator: str = Field(default=";", min_length=1)  # between them, in a text


class ReconstructData(PictureData):
    """The [data] table of what learns from pictures alone; a folder needs no class folders."""


class SentenceData(Table):
    """The [data] table of what learns from single sentences: text files, one sentence a line."""

    root: str | None = None
    train: str
    valid: str
    test: str | None = None
    column: int | None = Field(default=None, ge=1)  # of a .tsv file


class LanguageData(SentenceData):
    """The [data] table of a language model."""

    # Files that the vocabulary is learned from; data.train if empty. A language model that is to
    # start a translator with one vocabulary for both languages learns it from both.
    vocabulary: tuple[str, ...] = ()


class Start(Table):
    """The [start] table of a translator: folders of language models whose weights it begins with.

    The vocabulary comes from there, too (Ramachandran et al. 2017, Rothe et al. 2020).
    """

    encoder: str | None = None
    decoder: str | None = None

    @model_validator(mode="after")
    def _names_one(self) -> "Start":
        if self.encoder is None and self.decoder is None:
            raise ValueError("name a language model as encoder, as decoder, or as both")
        return self


class ImageStart(Table):
    """The [start] table of a classifier: a trained folder whose weights it begins with.

    The head is a new one, unless the classes are the same.
    """

    model: str


class Converted(Table):
    """The [converted] table: where a model comes from that was not trained here."""

    # Whose; of Marian, the folder of this name holds the other library's own files.
    format: Literal["marian", "timm", "hf", "torchvision", "google"]
    origin: str
    architecture: str | None = None  # its own name for it
    license: str | None = None
    prefix: str = ""  # language code in front of texts that begin with none, such as ">>kor<<"


CONVERTED = "converted:"  # in front of the origin, in place of the name of training data


class _Recipe(Table, ABC):
    seed: int = Field(default=1, ge=0)
    model: dict[str, Any]

    def config(self, **derived: int) -> Config:
        """Return the model's Config: its preset, this recipe's changes, and what the data say.

        Raises:
            RecipeError: unknown preset or key, a value that does not fit or contradicts the data.
        """
        changes = dict(self.model)
        if "preset" not in changes:
            raise RecipeError(f"model.preset is missing. Presets: {', '.join(PRESETS)}.")
        base = preset(str(changes.pop("preset")))
        derived = self._from_data() | derived
        allowed = [field.name for field in fields(base)]
        if not derived.keys() <= set(allowed) or not self._fits(base):
            raise RecipeError(
                f"model.preset {self.model['preset']!r} does not fit the task: "
                "a transformer- or seq2seq- preset translates; a vit-, deit-, cct-, swin-, cvt-, "
                "coatnet-, hybrid-, resnet-, bit-, vgg- or mlp preset classifies, and a vit- "
                "preset reconstructs; a gpt preset generates, a bert- preset fills, a tagger- "
                "preset tags."
            )
        for key, value in changes.items():
            if key not in allowed:
                raise RecipeError(_unknown(f"model.{key}", key, ["preset", *allowed]))
            if key in derived and derived[key] != value:
                raise RecipeError(
                    f"model.{key} is {value!r}, but the data make it {derived[key]}: leave it out."
                )
            usual = getattr(base, key)  # may be 0 where that stands for none
            if key not in derived and isinstance(value, int | float) and value != usual:
                _check_range(key, value, whole=type(usual) is int)
        try:
            config: Config = TypeAdapter(type(base)).validate_python(
                asdict(base) | changes | derived
            )
        except ValidationError as error:
            raise RecipeError(_explain(error, {"model": self.model}, prefix=("model",))) from None
        return config

    def _fits(self, base: Config) -> bool:
        """Say whether a model of this kind can do the task."""
        return not isinstance(base, LanguageModelConfig | TaggerConfig)

    @abstractmethod
    def _from_data(self) -> dict[str, int]:
        """Say what of the model's Config other tables fix."""


class TranslateRecipe(_Recipe):
    """A recipe with task = "translate"."""

    task: Literal["translate"]
    data: TranslateData
    start: Start | None = None
    converted: Converted | None = None
    tokenizer: PairTokenizerConfig = PairTokenizerConfig()
    train: TranslateTrainConfig = TranslateTrainConfig()
    decode: DecodeConfig = DecodeConfig()
    evaluate: EvaluateConfig = EvaluateConfig()

    def _from_data(self) -> dict[str, int]:
        if self.converted:  # the ids are those of its own vocabulary
            return {key: self.model[key] for key in ("pad", "start", "end") if key in self.model}
        return {"pad": PAD, "start": START, "end": END}


class ClassifyRecipe(_Recipe):
    """A recipe with task = "classify"."""

    task: Literal["classify"]
    data: ClassifyData
    converted: Converted | None = None
    start: ImageStart | None = None
    image: Preprocessing = Preprocessing()
    augment: Augmentation = Augmentation()
    distil: Distil | None = None
    train: ClassifyTrainConfig = ClassifyTrainConfig()

    @model_validator(mode="after")
    def _distils_one_class_each(self) -> "ClassifyRecipe":
        if self.distil is not None and self.data.multi_label:
            raise ValueError("a teacher of several classes a picture cannot be learned from yet")
        return self

    def _from_data(self) -> dict[str, int]:
        return _picture(self.image)


class ReconstructRecipe(_Recipe):
    """A recipe with task = "reconstruct": hidden patches are drawn from what is around them."""

    task: Literal["reconstruct"]
    data: ReconstructData
    image: Preprocessing = Preprocessing()
    augment: Augmentation = Augmentation()
    train: ReconstructTrainConfig = ReconstructTrainConfig()

    @model_validator(mode="after")
    def _mixes_nothing(self) -> "ReconstructRecipe":
        if self.augment.mixes:
            raise ValueError("mixup and cutmix mix classes, and there are none: leave them out")
        return self

    def _fits(self, base: Config) -> bool:
        return type(base) is VitConfig  # whose tokens are patches, and nothing else

    def _from_data(self) -> dict[str, int]:
        return _picture(self.image) | {"classes": 1}  # its head is not used


def _picture(image: Preprocessing) -> dict[str, int]:
    return {"channels": image.channels, "height": image.height, "width": image.width}


class GenerateRecipe(_Recipe):
    """A recipe with task = "generate": a language model that predicts the next token."""

    task: Literal["generate"]
    data: LanguageData
    tokenizer: TokenizerConfig = TokenizerConfig()
    train: TokenTrainConfig = TokenTrainConfig()

    def _fits(self, base: Config) -> bool:
        return isinstance(base, CausalConfig)

    def _from_data(self) -> dict[str, int]:
        return {"pad": PAD, "start": START, "end": END}


class FillRecipe(_Recipe):
    """A recipe with task = "fill": a language model that predicts hidden tokens."""

    task: Literal["fill"]
    data: LanguageData
    tokenizer: TokenizerConfig = TokenizerConfig()
    train: FillTrainConfig = FillTrainConfig()

    def _fits(self, base: Config) -> bool:
        return isinstance(base, MaskedConfig)

    def _from_data(self) -> dict[str, int]:
        return {"pad": PAD, "start": START, "end": END, "mask": MASK}


class TagRecipe(_Recipe):
    """A recipe with task = "tag": word spacing, an answer a character."""

    task: Literal["tag"]
    data: SentenceData
    train: TokenTrainConfig = TokenTrainConfig()

    def _fits(self, base: Config) -> bool:
        return isinstance(base, TaggerConfig)

    def _from_data(self) -> dict[str, int]:
        return {"pad": CHARACTER_PAD, "classes": len(TAGS)}


Recipe = (
    TranslateRecipe | ClassifyRecipe | ReconstructRecipe | GenerateRecipe | FillRecipe | TagRecipe
)
PictureRecipe = ClassifyRecipe | ReconstructRecipe
PATHS = ("data.root=", "data.train=", "data.valid=", "data.test=", "data.vocabulary=")
_ADAPTER: TypeAdapter[Recipe] = TypeAdapter(Annotated[Recipe, Field(discriminator="task")])
_TASKS: dict[str, type[Recipe]] = {
    "translate": TranslateRecipe,
    "classify": ClassifyRecipe,
    "reconstruct": ReconstructRecipe,
    "generate": GenerateRecipe,
    "fill": FillRecipe,
    "tag": TagRecipe,
}
# What early stopping may go by besides a translator's own choice; a larger perplexity is worse,
# and says nothing that the loss does not.
_MEASURED = {
    "classify": CLASSIFY_METRICS,
    "reconstruct": RECONSTRUCT_METRICS,
    "generate": tuple(name for name in LANGUAGE_METRICS if name != "perplexity"),
    "fill": tuple(name for name in LANGUAGE_METRICS if name != "perplexity"),
    "tag": TAG_METRICS,
}


def read_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe file and apply key=value overrides, such as "train.steps=200".

    "train.restart=", without a value, takes a key out of the file.

    Raises:
        RecipeError: not TOML, unknown keys, values of the wrong kind; all of them listed.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is not valid TOML: {error}.") from None
    # Paths last: whether one exists in the current folder depends on data.source and data.target.
    for override in sorted(overrides, key=lambda each: each.startswith(PATHS)):
        _apply(table, override)
    try:
        recipe = _ADAPTER.validate_python(table)
    except ValidationError as error:
        raise RecipeError(f"{path}: {_explain(error, table)}") from None
    try:
        recipe.config()  # unknown presets and keys are found before any data is read
        _check_early_stop(recipe)
    except UsageError as error:
        raise RecipeError(f"{path}: {error}") from None
    return recipe


def write_recipe(recipe: Recipe, config: Config) -> str:
    """Write a recipe as TOML with every default and the model's Config written out."""
    table = _without_none(recipe.model_dump(mode="python"))
    table["model"] = _without_none({"preset": recipe.model["preset"]} | asdict(config))
    if isinstance(recipe, TranslateRecipe) and recipe.converted:
        del table["tokenizer"], table["train"]  # nobody knows
    if isinstance(recipe, ClassifyRecipe) and recipe.converted:
        del table["augment"], table["train"]
    return tomli_w.dumps(table)


def differences(before: str, now: str) -> list[str]:
    """List the keys in which two written recipes differ, each with both values."""
    first, second = (dict(_flat(tomllib.loads(text))) for text in (before, now))
    return [
        f"{sign} {key} = {json.dumps(table[key], ensure_ascii=False)}"
        for key in {**first, **second}
        if first.get(key) != second.get(key)
        for sign, table in (("-", first), ("+", second))
        if key in table
    ]


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Write every key as on the command line: train.steps."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _apply(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise RecipeError(
            f"{override!r} is not of the form key=value, for example train.steps=200."
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a word needs no quotes on the command line
    *tables, last = key.split(".")
    for name in tables:
        if not text and name not in table:
            return  # there is nothing to take out
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise RecipeError(f"{override!r}: {name} is a value, not a table.")
    if not text:
        table.pop(last, None)
        return
    if override.startswith(PATHS):

        def found(name: str) -> str:
            if key == "data.root":  # a folder, whatever the languages
                return here(name)
            return here(name, endings(name, table.get("source"), table.get("target")))

        if isinstance(value, str):
            value = found(value)
        elif isinstance(value, list):  # data.vocabulary
            value = [found(each) if isinstance(each, str) else each for each in value]
    table[last] = value


def _check_range(key: str, value: float, *, whole: bool) -> None:
    """Refuse what no model can be built with: sizes below 1, shares outside of 0..1."""
    share = key.endswith("dropout")
    if not value >= whole or (share and value >= 1):  # nan is never right
        limit = f"at least {int(whole)}{' and below 1' if share else ''}"
        raise RecipeError(f"model.{key} is {value!r}: it must be {limit}.")


def _check_early_stop(recipe: Recipe) -> None:
    """Refuse to stop by what is not measured, before training rather than after."""
    stop = recipe.train.early_stop
    names = _MEASURED.get(recipe.task, ())
    if isinstance(recipe, TranslateRecipe):
        names = recipe.evaluate.metrics
    elif isinstance(recipe, ClassifyRecipe) and recipe.data.multi_label:
        names = MULTI_LABEL_METRICS
    measured = [f"val_{name}" for name in names]
    if stop is not None and stop.metric not in measured:
        raise RecipeError(
            f"train.early_stop.metric is {stop.metric!r}{nearest(stop.metric, measured)}"
            f"Validation measures {', '.join(measured)}."
        )


def _explain(error: ValidationError, table: Mapping[str, Any], prefix: Iterable[str] = ()) -> str:
    lines = [_line(detail, table, prefix) for detail in error.errors()]
    return lines[0] if len(lines) == 1 else "\n".join([f"{len(lines)} mistakes:", *lines])


def _line(detail: ErrorDetails, table: Mapping[str, Any], prefix: Iterable[str]) -> str:
    # The tag of the union ("translate") is part of pydantic's location, not of the recipe's key.
    location = [str(part) for part in detail["loc"]]
    task = location.pop(0) if location and location[0] in _TASKS else str(table.get("task"))
    key = ".".join([*prefix, *location])
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown(key, location[-1], _allowed(_TASKS[task], location[:-1]))
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"task is {table.get('task')!r}; allowed: {', '.join(map(repr, _TASKS))}."
    if detail["type"] in ("missing", "missing_argument"):
        return f"{key} is missing."
    if detail["type"] in ("dataclass_type", "dict_type", "model_type"):
        return f"{key} = {detail['input']!r}: it must be a table of keys and values."
    reason = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "value_error":  # about several keys of a table together
        return f"{key}: {reason}."
    return f"{key} = {detail['input']!r}: {reason[0].lower()}{reason[1:]}."


def _unknown(key: str, name: str, allowed: Sequence[str]) -> str:
    return f"there is no key {key!r}{nearest(name, allowed)}Allowed: {', '.join(allowed)}."


def _allowed(table: Any, location: Sequence[str]) -> list[str]:
    """List the keys of the table at a location in a recipe."""
    for name in location:
        if isinstance(table, type) and issubclass(table, BaseModel):
            table = table.model_fields[name].annotation
        else:
            (table,) = (field.type for field in fields(table) if field.name == name)
        if isinstance(table, UnionType):  # an optional table
            table = get_args(table)[0]
    if is_dataclass(table):
        return [field.name for field in fields(table)]
    return list(getattr(table, "model_fields", {}))


def _without_none(value: Any) -> Any:
    """TOML has no null: a key that is not set is left out."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    return value
