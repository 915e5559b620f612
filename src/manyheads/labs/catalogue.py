"""The experiments and their questions; listing them imports nothing heavy."""

import tomllib
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from manyheads.errors import NotFoundError, nearest

if TYPE_CHECKING:
    from manyheads.labs.bench import Bench, Size
    from manyheads.labs.findings import Findings, Scale


@dataclass(frozen=True, kw_only=True)
class Lab:
    """An experiment, as experiments.toml describes it."""

    name: str
    atlas: tuple[str, ...]  # its entries
    question: str
    method: str
    limits: str  # what its scale cannot show
    size: Mapping[str, Any] = field(default_factory=dict)  # shared by the following
    full: Mapping[str, Any]  # minutes
    quick: Mapping[str, Any]  # under a minute
    smoke: Mapping[str, Any]  # seconds, for the tests
    seeds: int = 3  # of a full run; a quick run uses 2, a smoke run 1; without randomness 1

    @cached_property
    def sizes(self) -> "dict[Scale, Size]":
        """The sizes of each scale, as named tuples: they compare and show themselves."""
        names = [name for name in self.full if name not in self.size]
        kind = namedtuple("Size", [*names, *self.size])  # type: ignore[misc]
        scales: dict[Scale, Any] = {"full": self.full, "quick": self.quick, "smoke": self.smoke}
        return {scale: kind(**{**self.size, **table}) for scale, table in scales.items()}

    def run(self, bench: "Bench") -> "Findings":
        """Import the experiment, and run it."""
        from manyheads.labs.result_figures import findings

        size = bench.choose(self.sizes)
        experiment = import_module(f"manyheads.labs.experiments.{self.name}_lab")
        return findings(self.name, size, *experiment.run(bench, size))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(each) for key, each in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


_TEXT = (files(__package__) / "experiments.toml").read_text(encoding="utf-8")
CATALOGUE = {name: Lab(name=name, **_frozen(each)) for name, each in tomllib.loads(_TEXT).items()}


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
