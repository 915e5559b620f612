"""Preset sizes by name: `presets.toml`, and functions to look up, add and build them."""

import sys
import tomllib
from collections import UserDict
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, overload

from torch import nn

from manyheads.errors import UsageError, nearest
from manyheads.models.model_config import Builds, ModelConfig, lacking
from manyheads.registration import register

M = TypeVar("M", bound=nn.Module)


def _made(stored: dict[str, Any]) -> ModelConfig:
    """Import a model, and make its Config; that of a part is a table that names its own."""
    module, _, name = stored["config"].partition(":")
    changes = {key: value for key, value in stored.items() if key != "config"}
    for key, value in changes.items():
        if isinstance(value, list):
            changes[key] = tuple(value)
        elif isinstance(value, dict):
            changes[key] = _made(value)
    return getattr(import_module(f"manyheads.models.{module}"), name)(**changes)


class _Presets(UserDict[str, Any]):
    """Presets by name; the model of one is imported when it is first asked for."""

    def __init__(self) -> None:
        super().__init__()
        tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
        for config, presets in tables.items():
            for name, own in presets.items():
                base = presets[own.pop("like")] if "like" in own else {}
                self.data[name] = {"config": config} | base | own

    def __getitem__(self, name: str) -> ModelConfig:
        found = super().__getitem__(name)
        if isinstance(found, dict):
            self[name] = found = _made(found)
        return found


PRESETS = _Presets()
REGISTERED_BY: dict[str, str] = {}  # presets, and the modules that registered them


def preset(name: str) -> ModelConfig:
    """Look up a preset; a ViT's patch size may follow a slash: "vit-b/32".

    Raises:
        UsageError: no such preset.
    """
    if not isinstance(name, str):
        raise UsageError(f'{name!r} is not the name of a preset: give one, such as "vit-b/16".')
    base, _, suffix = name.partition("/")
    found = PRESETS.get(name)
    if found is None and suffix and base in PRESETS:
        found = PRESETS[base].variant(suffix)
    if found is None:
        raise UsageError(
            f"There is no preset {name!r}{nearest(base, PRESETS)}Presets: {', '.join(PRESETS)}; "
            'the ViTs with any patch size, as in "vit-b/32".'
        )
    return found


def register_preset(name: str, config: ModelConfig) -> None:
    """Add a preset under a new name, for recipes (`model.preset`), `build` and `preset`.

    The config is a frozen dataclass that inherits `ModelConfig`, or has all of its members.

    Raises:
        UsageError: the name is no text, empty, or exists; the object is not a model's Config.
    """
    base, _, suffix = str(name).partition("/")
    if suffix and base in PRESETS and PRESETS[base].variant(suffix):
        raise UsageError(f"There is a preset {name!r} already: choose another name.")
    wanted = "A preset is a frozen dataclass that inherits manyheads.models.ModelConfig."
    register(PRESETS, "a preset", name, config, wanted, lacking(config))
    REGISTERED_BY[name] = _caller()


def _caller() -> str:
    """Name the module that called this one; in tests, jaxtyping's checks stand between."""
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_globals["__name__"].startswith((__name__, "jaxtyping.")):
        frame = frame.f_back
    return str(frame.f_globals["__name__"]) if frame else "__main__"


@overload
def build(config: str) -> nn.Module: ...
@overload
def build(config: Builds[M]) -> M: ...
def build(config: Builds[M] | str) -> M | nn.Module:
    """Build a model from its Config or the name of a preset; torch's generator draws the weights.

    Raises:
        UsageError: there is no preset of this name, or it is neither a name nor a Config.
    """
    if isinstance(config, type) or not isinstance(config, str | Builds):
        raise UsageError(
            f"{config!r} is neither a Config nor the name of a preset: give a name, such as "
            '"vit-b/16", or a Config with its values, such as VitConfig(classes=10).'
        )
    return preset(config).build() if isinstance(config, str) else config.build()
