"""The register of splits: which content is held out for testing, wherever the file may lie."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from manyheads.errors import UsageError


@dataclass(frozen=True, slots=True)
class Split:
    """A registered split: its name, and whether it is a test split."""

    name: str
    test: bool


@cache
def _register() -> dict[str, Split]:
    text = files("manyheads.data").joinpath("splits.json").read_text(encoding="utf-8")
    return {entry["sha256"]: Split(entry["name"], entry["test"]) for entry in json.loads(text)}


def registered(hashes: Iterable[str]) -> list[Split]:
    """Look up content by its sha256."""
    known = _register()
    return [known[digest] for digest in hashes if digest in known]


def refuse_test(hashes: Iterable[str], what: str) -> None:
    """Refuse to train or select on a registered test split.

    Raises:
        UsageError: it is one.
    """
    for split in registered(hashes):
        if split.test:
            raise UsageError(
                f"{what} is the test split {split.name}: it is measured once, with "
                "`manyheads evaluate --final`, and never trained or selected on. Use another file."
            )
