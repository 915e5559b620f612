"""The register of test splits: content is identified by its sha256, not by its file name."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from manyheads.errors import UsageError


@dataclass(frozen=True, slots=True)
class Split:
    """A registered split."""

    name: str
    test: bool


@cache
def _register() -> dict[str, Split]:
    entries = json.loads(Path(__file__).with_name("splits.json").read_text("utf-8"))
    return {entry["sha256"]: Split(entry["name"], entry["test"]) for entry in entries}


def find_registered_splits(hashes: Iterable[str]) -> list[Split]:
    """Return the registered splits among these sha256 hashes."""
    known = _register()
    return [known[digest] for digest in hashes if digest in known]


def reject_test_split(hashes: Iterable[str], name: str) -> None:
    """Refuse to train or select on a registered test split.

    Raises:
        UsageError: a hash belongs to a test split.
    """
    for split in find_registered_splits(hashes):
        if split.test:
            raise UsageError(
                f"{name} is the test split {split.name}: it is measured once, with "
                "`final=True`, and never trained or selected on. Use another file."
            )
