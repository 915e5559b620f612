"""A finding of the doctor: what is wrong, the evidence, and what to do about it."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, cast

from manyheads.data.checks.issue_types import Severity
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
    evidence: tuple[str, ...]  # numbers with their step, sentences, names of images
    remedy: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # recipe keys with the values to try
    step: int | None = None  # where it shows


Findings = Iterator[Finding]  # what a check yields


@cache
def texts() -> dict[str, dict[str, str]]:
    """Read severity, message and remedy of every kind."""
    table = files("manyheads.doctor").joinpath("findings.toml")
    return tomllib.loads(table.read_text(encoding="utf-8"))


def finding(
    name: str,
    *evidence: str,
    severity: Severity | None = None,
    settings: Mapping[str, Any] | None = None,
    step: int | None = None,
    **values: object,
) -> Finding:
    """Make the finding of this name in findings.toml, with the values of its {names}."""
    text = texts()[name]
    return Finding(
        kind=name.partition(":")[0],
        severity=severity or cast(Severity, text["severity"]),
        what=text["what"].format(**values),
        evidence=evidence,
        remedy=text["remedy"].format(**values),
        settings=settings or {},
        step=step,
    )


def rounded(value: float) -> float:
    """Round to a number that people put into recipes: two digits."""
    return float(f"{value:.2g}")


def cut(text: str, length: int = 90) -> str:
    """Shorten an example for a terminal."""
    return labels.cut(" ".join(text.split()), length)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Write changes as the command line of `manyheads train` takes them."""
    return " ".join(_setting(key, value) for key, value in settings.items())


def _setting(key: str, value: object) -> str:
    text = _toml(value)
    return f"{key}='{text}'" if " " in text else f"{key}={text}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)
