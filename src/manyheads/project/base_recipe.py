"""Recipes: typed TOML, every default in one place, every unknown key answered."""

import tomllib
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from manyheads.asks.evaluate_request import ValidationConfig
from manyheads.data.text.encoding import is_valid_unicode
from manyheads.errors import LOG, RecipeError, UsageError, nearest
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS, preset
from manyheads.project.migrate import migrate
from manyheads.project.paths import allow, endings, here
from manyheads.project.recipe_limits import check_numbers, check_range, short
from manyheads.project.recipe_mistakes import explain, unknown
from manyheads.project.registry import find_task, import_installed
from manyheads.project.toml_file import read_toml
from manyheads.train.train_config import TrainConfig

C = TypeVar("C", bound=ModelConfig)


class Table(BaseModel):
    """A table that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Converted(Table):
    """The [converted] table: where a model comes from that was not trained here."""

    # Whose; of Marian, the folder of this name holds the other library's own files.
    format: Literal["marian", "timm", "hf", "torchvision", "google"]
    origin: str
    revision: str | None = None  # its commit on the hub
    architecture: str | None = None  # its own name for it
    license: str | None = None
    prefix: str = ""  # language code in front of texts that begin with none, such as ">>kor<<"


class Start(Table):
    """The [start] table: a trained model whose weights a new one begins with."""

    model: str


CONVERTED = "converted:"  # in front of the origin, in place of the name of training data


class DataTable(Table):
    """The [data] table: names of data sets, relative to `root` unless they are absolute."""

    has_pairs: ClassVar[bool] = False  # parallel text
    has_images: ClassVar[bool] = False
    has_captions: ClassVar[bool] = False  # images with texts, in the columns of `CaptionData`

    root: str | None = None
    train: str
    valid: str | None
    test: str | None = None

    @property
    def language_pair(self) -> tuple[str | None, str | None]:
        """Languages of a source, or of the only texts, and of a target; None where unknown."""
        return None, None

    def split_name(self, split: str) -> str | None:
        """Return the name of a split's data; None if the recipe names none."""
        return {"train": self.train, "valid": self.valid, "test": self.test}.get(split)


class Recipe(Table, ABC):
    """Fields of every recipe; a task's own class (`tasks/`) adds its tables.

    Fields of a subclass: `task: Literal["..."]`, `data` and `train` at least.
    """

    reads: ClassVar[tuple[str, ...]] = ()  # fields of the model's Config, besides the derived

    task: str
    seed: int = Field(default=1, ge=0)
    model: dict[str, Any]
    data: DataTable
    train: TrainConfig
    evaluate: ValidationConfig = ValidationConfig()

    @model_validator(mode="after")
    def _keeps_what_was_learned(self) -> Self:
        if self.train.toward_start and getattr(self, "start", None) is None:
            raise ValueError(
                "train.toward_start keeps weights of the model in [start], and there is none: "
                "name one, or leave train.toward_start out"
            )
        return self

    @property
    def origin(self) -> Converted | None:
        """Where the model comes from; None if it is trained from this recipe."""
        converted = getattr(self, "converted", None)  # a field of tasks whose models are converted
        return converted if isinstance(converted, Converted) else None

    @property
    def metrics(self) -> Sequence[str]:
        """Metrics of validation that early stopping may go by, best known first."""
        return ()

    def tables_not_written(self) -> Sequence[str]:
        """Tables that mean nothing for this model, such as [train] of a converted one."""
        return ("train",) if self.origin else ()

    @classmethod
    def complete(cls, table: dict[str, Any]) -> None:
        """Fill in what a recipe file leaves out because another of its keys says it, in place."""

    def config(self, **derived: Any) -> ModelConfig:
        """Return the model's Config: its preset, this recipe's changes, and sizes of the data.

        Raises:
            RecipeError: unknown preset or key, a value that does not fit or contradicts the data.
        """
        name, base, changes = _of_preset(self.model)
        derived = self.derived() | derived
        if self.task not in base.tasks:
            fitting = [name for name, each in PRESETS.items() if self.task in each.tasks]
            raise RecipeError(
                f"model.preset {name!r} does not fit the task {self.task!r}. "
                f"Presets that do: {', '.join(fitting)}."
            )
        if lacks := sorted({*derived, *self.reads} - {field.name for field in fields(base)}):
            raise RecipeError(
                f"model.preset {name!r}: {type(base).__name__} lacks {', '.join(lacks)}, which the "
                f"task {self.task!r} needs: add such fields to it."
            )
        return configure(base, changes, derived)

    def derived(self) -> dict[str, Any]:
        """Return keys of the model's Config that follow from other tables of the recipe."""
        return {}


def _of_preset(model: Mapping[str, Any]) -> tuple[str, ModelConfig, dict[str, Any]]:
    """Return the name of a [model] table's preset, its Config, and the changes."""
    if "preset" not in model:
        raise RecipeError(f"model.preset is missing. Presets: {', '.join(PRESETS)}.")
    name = str(model["preset"])
    return name, preset(name), {key: value for key, value in model.items() if key != "preset"}


def configure(
    base: C, changes: Mapping[str, Any], derived: Mapping[str, Any], table: str = "model"
) -> C:
    """Return a Config with the changes of a recipe's table, and what the data decide.

    Raises:
        RecipeError: unknown keys, and values that do not fit or contradict the data: all of them.
    """
    usual = {field.name: getattr(base, field.name) for field in fields(base)}
    wrong: dict[str, str] = {}
    for key, value in changes.items():
        if key not in usual:
            wrong[key] = unknown(f"{table}.{key}", key, ["preset", *usual])
        elif key in derived and derived[key] != value:
            wrong[key] = (
                f"{table}.{key} is {value!r}, but the data make it {derived[key]}: leave it out."
            )
        elif key not in derived and value != usual[key]:  # may be 0 where that stands for none
            try:
                check_range(key, value, whole=type(usual[key]) is int)
            except RecipeError as error:
                wrong[key] = str(error)
    right = {key: value for key, value in changes.items() if key not in wrong}
    mistakes = list(wrong.values())
    try:
        config: C = TypeAdapter(type(base)).validate_python({**usual, **right, **derived})
    except ValidationError as error:
        mistakes += explain(error, type(base), prefix=(table,))
    except UsageError:  # values that contradict: perhaps because others were left out as wrong
        if not mistakes:
            raise
    if mistakes:
        raise RecipeError(*mistakes)
    return config


PATHS = tuple(
    f"data.{key}="
    for key in ("root", "train", "valid", "test", "additional", "exclude", "vocabulary", "images")
)


def read_recipe(path: Path, overrides: Sequence[str] = (), *, stored: bool = False) -> Recipe:
    """Read a recipe file and apply key=value overrides, such as "train.steps=200".

    "train.restart=", without a value, takes a key out of the file. Keys of format 1 are renamed.
    Unless it is `stored` in a model folder that warns, and addresses may be read (`paths.allow`).

    Raises:
        RecipeError: not TOML, unknown keys, values of the wrong kind; all of them listed.
    """
    table = read_toml(path)
    # Paths last: whether one exists in the current folder depends on data.source and data.target.
    for override in sorted(overrides, key=lambda each: each.startswith(PATHS)):
        _apply(table, override)
    try:
        check_numbers(table)
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None
    if not stored:
        import_installed(table)
    if (renamed := migrate(table)) and not stored:
        LOG.warning("%s has keys of an older version: %s.", path, ", ".join(renamed))
    try:
        cls: type[Recipe] = find_task(table.get("task")).recipe
        if not stored:
            cls.complete(table)
        recipe = cls.model_validate(table)
    except ValidationError as error:
        found = RecipeError(*explain(error, cls), *_of_model(cls, table.get("model")))
        raise RecipeError(f"{path}: {found}") from None
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None
    mistakes = list[str]()
    for check in (recipe.config, partial(_check_early_stop, recipe)):
        try:
            check()  # unknown presets and keys are found before any data is read
        except UsageError as error:
            mistakes += error.args
    if mistakes:
        raise RecipeError(f"{path}: {RecipeError(*mistakes)}")
    if not stored:
        allow(*dict(recipe.data).values())
    return recipe


def write_recipe(recipe: Recipe, config: ModelConfig) -> str:
    """Write a recipe as TOML with every default and the model's Config written out.

    Raises:
        RecipeError: the name of data is not UTF-8, which TOML is.
    """
    table = _without_none(recipe.model_dump(mode="python"))
    table["model"] = _without_none({"preset": recipe.model["preset"]} | asdict(config))
    table = {name: each for name, each in table.items() if each != {}}
    for name in recipe.tables_not_written():
        del table[name]
    try:
        text = tomli_w.dumps(table)
    except TypeError as error:
        raise RecipeError(
            f"{type(config).__name__} cannot be written as TOML: {error}. Let its fields be "
            "numbers, texts, booleans, lists or tables of these."
        ) from None
    if not is_valid_unicode(text):
        wrong = next(f"{k} = {v!r}" for k, v in _flat(table) if not is_valid_unicode(str(v)))
        raise RecipeError(
            f"{wrong} is not valid UTF-8, so a recipe cannot hold it: rename the file or folder."
        )
    return text


def differences(before: str, now: str) -> list[str]:
    """List the keys in which two written recipes differ, each with both values."""
    first, second = (dict(_flat(tomllib.loads(text))) for text in (before, now))
    return [
        f"{sign} {key} = {short(table[key])}"
        for key in {**first, **second}
        if first.get(key) != second.get(key)
        for sign, table in (("-", first), ("+", second))
        if key in table
    ]


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Write every key as a change of it does: train.steps."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _apply(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise RecipeError(
            f"{override!r} is not of the form key=value, for example train.steps=200."
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text  # a word needs no quotes
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
        # Folders are of no language; data.vocabulary is a list.
        folder = key in ("data.root", "data.images")
        sides = (None, None) if folder else (table.get("source"), table.get("target"))
        names = value if isinstance(value, list) else [value]
        names = [here(n, endings(n, *sides)) if isinstance(n, str) else n for n in names]
        value = names if isinstance(value, list) else names[0]
    table[last] = value


def _check_early_stop(recipe: Recipe) -> None:
    """Refuse early stopping by a metric that is not measured."""
    stop = recipe.train.early_stop
    measured = [f"val_{name}" for name in recipe.metrics]
    if stop is not None and stop.metric not in measured:
        raise RecipeError(
            f"train.early_stop.metric is {stop.metric!r}{nearest(stop.metric, measured)}"
            f"Validation measures {', '.join(measured)}."
        )


def _of_model(cls: type[Recipe], model: object) -> Sequence[str]:
    """List the mistakes in a [model] table where others keep its recipe from being made.

    None of a Config that holds another, which the whole recipe decides.
    """
    if not isinstance(model, Mapping) or cls.config is not Recipe.config:
        return ()
    try:
        _, base, changes = _of_preset(model)
        configure(base, changes, {})
    except UsageError as error:
        return error.args
    return ()


def _without_none(value: Any) -> Any:
    """TOML has no null: a key that is not set is left out."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    return value
