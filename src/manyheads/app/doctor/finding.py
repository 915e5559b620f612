"""What the doctor says: a finding, what it rests on, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manyheads.data.damage import Severity
from manyheads.lens import labels

SHOWN = 3  # examples that a finding shows


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong with a run.

    error: the model is of no use, or its scores mean nothing. warning: it could be better, or a
    score is too good. note: worth a look, often as it should be.
    """

    kind: str
    severity: Severity
    what: str
    evidence: tuple[str, ...]  # numbers with their step, sentences, names of pictures
    remedy: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # recipe keys with the values to try
    step: int | None = None  # where it shows


def rounded(value: float) -> float:
    """Round to a number that people put into recipes: two digits."""
    return float(f"{value:.2g}")


def cut(text: str, length: int = 90) -> str:
    """Shorten an example for a terminal."""
    return labels.cut(" ".join(text.split()), length)
