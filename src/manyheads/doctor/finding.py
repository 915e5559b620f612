"""A finding of the doctor: what is wrong, the evidence, and what to do about it."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from manyheads.data.checks.issue_types import SEVERITIES, Severity
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
def texts(table: str = "findings") -> dict[str, dict[str, Any]]:
    """Read severity, message and remedy of every kind, or another table beside this file."""
    return tomllib.loads(files(__package__).joinpath(f"{table}.toml").read_text("utf-8"))


FOLLOWS, CONTRADICTED = texts("causes")["follows"], texts("causes")["contradicted"]


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
        severity=severity or text["severity"],
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
    texts = {key: _toml(value) for key, value in settings.items()}
    return " ".join(f"{k}='{text}'" if " " in text else f"{k}={text}" for k, text in texts.items())


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def by_cause(findings: list[Finding]) -> list[Finding]:
    """Leave only what needs a remedy of its own, the worst first, each kind once."""
    worst = sorted(findings, key=lambda each: SEVERITIES.index(each.severity))
    wrong = {other for each in worst for other in CONTRADICTED.get(each.kind, ())}
    left = {each.kind: each for each in reversed(worst) if each.kind not in wrong}
    # In the order of FOLLOWS: what two causes explain belongs to the first.
    explained: dict[str, str] = {}
    for cause, consequences in FOLLOWS.items():
        if cause in left and cause not in explained:
            explained = dict.fromkeys(consequences, cause) | explained
    hence: dict[str, list[str]] = {}
    for kind, each in left.items():
        if kind in explained:
            hence.setdefault(explained[kind], []).append(f"hence: {each.what}")
    return [
        replace(each, evidence=(*each.evidence, *hence.get(each.kind, ())))
        for each in worst
        if each.kind not in explained and each is left.get(each.kind)
    ]
