"""A converter: what it knows of a configuration, checked before weights are there, and the mapping.

`convert.check(about)` needs the configuration alone, so a model that cannot be converted is refused
before its weights are fetched; `families.check(about)` finds the converter for a config.json and
asks it. `convert(about, tensors)` checks and converts. Whatever a configuration says that its
converter does not know is refused: it may change what the model computes without a trace in its
tensors.
"""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from manyheads.errors import UsageError
from manyheads.models.components import Activation
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors

Config = TypeVar("Config")
Made = tuple[Config, State]
Names = dict[str, Any]  # what a library calls its modules
LARGEST = 1 << 24  # number in a configuration; vocabularies are the largest
OWN = frozenset({"wanted_size"})  # ours: the height and width that the user asks for


def read_tables(name: str) -> dict[str, Any]:
    """Read a TOML file beside this module; its lists become tuples."""

    def frozen(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: frozen(part) for key, part in value.items()}
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    return frozen(tomllib.loads(Path(__file__).with_name(name).read_text("utf-8")))


TABLES = read_tables("converters.toml")
ACTIVATION_NAMES: dict[str, Activation] = TABLES["activations"]  # what other libraries call them


@dataclass(frozen=True)
class Converter(Generic[Config]):
    """(settings, tensors) -> (Config, state dict).

    Settings are the other model's constructor arguments where they differ from the defaults, or
    the content of its config.json; tensors are its state dict, under the names of its stored
    files. Dropout is a matter of training and stays 0. A part that has no equivalent here, or a
    missing one, is refused with a UsageError.
    """

    check: Callable[[Settings], Any]
    map: Callable[[Any, Tensors], Made[Config]]  # of what `check` returned

    def __call__(self, about: Settings, tensors: Tensors) -> Made[Config]:
        """Check the configuration, and convert."""
        return self.map(self.check(about), tensors)


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys of a configuration that a converter knows."""

    kind: str  # of the model, for messages
    read: Settings = field(default_factory=dict)  # with the default
    # Not shown by tensors, and the values that have an equivalent here; the default first.
    only: Mapping[str, Sequence[object]] = field(default_factory=dict)
    # Names with spaces between: shown by tensors (KEY=FIELD where our Config has the same)
    shown: str = ""
    idle: str = ""  # of training, other tasks or tools: no answer depends on them
    also: Callable[[Settings], None] = lambda _: None  # checks what goes together
    section: str = ""  # in a whole model's configuration, with all of these
    whole: str = ""  # what such a configuration says beside

    def __call__(self, about: Settings) -> dict[str, Any]:
        """Put settings over the defaults.

        Raises:
            UsageError: a key is not known, or its value is none that can be converted.
        """
        if self.section in about:
            self._refuse(about, {self.section, f"{self.section}_dict", *self.whole.split()})
            new, old = (table(about, key) for key in (self.section, f"{self.section}_dict"))
            # An old form of the file has a second table, which overrides the first, its defaults
            # included.
            about = {**new, **self.usual, **old} if old else new
        self._refuse(about, {*self.usual, *self.equals, *f"{self.idle} {self.whole}".split()})
        for key, usual in self.read.items():
            if key in about and not _is_like(about[key], usual):
                raise UsageError(
                    f"The model's configuration has {key} = {about[key]!r:.80}; it should be like "
                    f"{usual!r}. Correct it, or get the folder again."
                )
        for key, values in self.only.items():
            if about.get(key, values[0]) not in values:
                raise UsageError(
                    f"This {self.kind} has {key} = {about[key]!r:.80}; only "
                    f"{' or '.join(map(repr, dict.fromkeys(values)))} is supported."
                )
        settings = {**self.usual, **about}
        self.also(settings)
        return settings

    @property
    def usual(self) -> dict[str, Any]:
        """What holds where nothing is said."""
        return {**{key: values[0] for key, values in self.only.items()}, **self.read}

    def reader(
        self, take: Callable[[dict[str, Any], ForeignTensors], Made[Config]]
    ) -> Converter[Config]:
        """Make a converter of a function that takes all tensors, and contradicts no key."""

        def convert(settings: dict[str, Any], tensors: Tensors) -> Made[Config]:
            weights = ForeignTensors(tensors, self.kind)
            config, state = take(settings, weights)
            weights.finish()
            self.compare(settings, config)
            return config, state

        return Converter(self, convert)

    @property
    def equals(self) -> dict[str, str]:
        """What tensors show, and the field of our Config that says the same."""
        return {key: ours for key, _, ours in (e.partition("=") for e in self.shown.split())}

    def compare(self, settings: Settings, config: Any) -> None:
        """Refuse tensors that contradict the settings: they are another model's.

        Raises:
            UsageError: they differ.
        """
        for key, ours in self.equals.items():
            stated, actual = settings.get(key), getattr(config, ours, None)
            stated = tuple(stated) if isinstance(stated, list) else stated
            if isinstance(actual, type(stated)) and stated != actual:
                raise UsageError(
                    f"The model is said to have {key} {stated}, but its tensors have {actual}: "
                    "they belong to another architecture."
                )

    def _refuse(self, about: Settings, known: Collection[str]) -> None:
        """Refuse what is said under other keys; null and what is empty say nothing."""
        for key in sorted(about.keys() - known - OWN):
            if about[key] not in (None, {}, []):
                raise UsageError(
                    f"This {self.kind} has {key} = {about[key]!r:.80}, which is not understood "
                    "here: it may mean a part that has no equivalent. If no answer depends on it, "
                    "take it out of the configuration."
                )


def keys(name: str, also: Callable[[Settings], None] = lambda _: None) -> Keys:
    """Return the keys that a converter of `converters.toml` knows; `also` as in `Keys`."""
    entry = _entry(name)
    only: dict[str, tuple[object, ...]] = {
        key: tuple(None if value == "" else value for value in values)
        for key, values in entry["only"].items()
    }
    for key, usual in entry["activation"].items():
        only[key] = (usual or None, *ACTIVATION_NAMES)
    whole = f"{entry['whole']} {TABLES['hf']['idle']}" if entry["section"] else ""
    read = entry["read"] | dict.fromkeys(entry["unset"].split())
    texts = {key: entry[key] for key in ("kind", "shown", "idle", "section")}
    return Keys(**texts, read=read, only=only, whole=whole, also=also)


def converter(
    name: str, read: Callable[[dict[str, Any], ForeignTensors, Names], Made[Config]]
) -> Converter[Config]:
    """Make the converter of a library, by its table, of one that takes the names of modules too."""
    modules = name_map(name)
    return keys(name).reader(lambda settings, weights: read(settings, weights, modules))


def name_map(name: str) -> Names:
    """Return what a library calls its modules, by our names or as its converter reads it."""
    own = TABLES[name]
    return (name_map(own["like"]) if "like" in own else {}) | own.get("modules", {})


@cache
def _entry(name: str) -> dict[str, Any]:
    """Return a table of `converters.toml` with what it extends."""
    own = TABLES[name]
    base = _entry(own["like"]) if "like" in own else {}
    tables = {key: base.get(key, {}) | own.get(key, {}) for key in ("read", "only", "activation")}
    texts = ("unset", "shown", "idle", "whole")
    names = {key: f"{base.get(key, '')} {own.get(key, '')}" for key in texts}
    kept = {key: own.get(key, base.get(key, "")) for key in ("kind", "section")}
    return {**tables, **names, **kept}


def table(about: Settings, key: str) -> dict[str, Any]:
    """Return a table in a configuration; an empty one where none is said.

    Raises:
        UsageError: it is something else.
    """
    value = about.get(key) or {}
    if not isinstance(value, Mapping):
        raise UsageError(
            f"The model's configuration has {key} = {value!r:.80}; it should be a table of "
            "settings. Correct it, or get the folder again."
        )
    return dict(value)


def _is_like(value: object, usual: object) -> bool:
    """Say whether a value, or each of several, is of its default's type."""
    usual = usual[0] if isinstance(usual, tuple | list) else usual
    if isinstance(value, tuple | list):
        return len(value) > 0 and all(_is_like(part, usual) for part in value)
    if usual is None or isinstance(usual, bool | str) or not isinstance(value, int | float):
        return usual is None or isinstance(value, type(usual))
    number = isinstance(usual, float) or type(value) is int
    return number and not isinstance(value, bool) and 0 <= value <= LARGEST
