"""Causes among findings: what follows from another finding becomes its evidence."""

import tomllib
from dataclasses import replace
from importlib.resources import files

from manyheads.data.checks.issue_types import SEVERITIES
from manyheads.doctor.finding import Finding

_TABLES: dict[str, dict[str, list[str]]] = tomllib.loads(
    files("manyheads.doctor").joinpath("causes.toml").read_text(encoding="utf-8")
)
FOLLOWS, CONTRADICTED = _TABLES["follows"], _TABLES["contradicted"]


def by_cause(findings: list[Finding]) -> list[Finding]:
    """Leave only what needs a remedy of its own, the worst first, each kind once."""
    worst = sorted(findings, key=lambda each: SEVERITIES.index(each.severity))
    wrong = {other for each in worst for other in CONTRADICTED.get(each.kind, ())}
    left = {each.kind: each for each in reversed(worst) if each.kind not in wrong}
    # In the order of FOLLOWS: what two causes explain belongs to the first.
    explained: dict[str, str] = {}
    for cause, consequences in FOLLOWS.items():
        if cause in left and cause not in explained:
            for kind in consequences:
                explained.setdefault(kind, cause)
    hence = {
        cause: [
            f"hence: {each.what}" for kind, each in left.items() if explained.get(kind) == cause
        ]
        for cause in left
    }
    return [
        replace(each, evidence=(*each.evidence, *hence[each.kind]))
        for each in worst
        if each.kind not in explained and each is left.get(each.kind)
    ]
