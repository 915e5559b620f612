"""The experiments and their questions; listing them imports nothing heavy."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from manyheads.errors import NotFoundError, nearest

if TYPE_CHECKING:
    from manyheads.labs.bench import Bench
    from manyheads.labs.findings import Findings, Scale

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Lab:
    """An experiment, as experiments.toml describes it."""

    name: str
    atlas: tuple[str, ...]  # its entries
    question: str
    method: str
    limits: str  # what its scale cannot show
    full: Mapping[str, Any]  # sizes: minutes
    quick: Mapping[str, Any]  # under a minute
    smoke: Mapping[str, Any]  # seconds, for the tests
    seeds: int = 3  # of a full run; a quick run uses 2, a smoke run 1; without randomness 1

    def run(self, bench: "Bench") -> "Findings":
        """Import the experiment, and run it."""
        found: Findings = import_module(f"manyheads.labs.experiments.{self.name}_lab").run(bench)
        return found


def _read() -> dict[str, Lab]:
    text = (files(__package__) / "experiments.toml").read_text(encoding="utf-8")
    return {name: Lab(name=name, **_frozen(each)) for name, each in tomllib.loads(text).items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(each) for key, each in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


CATALOGUE = _read()


def find(name: str) -> Lab:
    """Look up an experiment.

    Raises:
        NotFoundError: there is no such experiment.
    """
    if name not in CATALOGUE:
        raise NotFoundError(
            f"There is no lab {name!r}{nearest(name, CATALOGUE)}Labs: {', '.join(CATALOGUE)}."
        )
    return CATALOGUE[name]


def read_sizes(name: str, size: Callable[..., S]) -> "dict[Scale, S]":
    """Build the sizes of an experiment's runs."""
    lab = find(name)
    return {"full": size(**lab.full), "quick": size(**lab.quick), "smoke": size(**lab.smoke)}
