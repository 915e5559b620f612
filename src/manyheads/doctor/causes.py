"""Causes among findings: what follows from another finding becomes its evidence."""

from dataclasses import replace

from manyheads.data.checks.issue_types import SEVERITIES
from manyheads.doctor.finding import Finding

OUTPUTS = {"repeated", "copied", "empty", "same", "wrong-script", "length"}
ONE_FOR_ALL = {"same-output", "one-answer", "flat-features", "idle-heads"}
# What follows from a finding follows from it, and needs no remedy of its own.
FOLLOWS = {
    "non-finite": {"spikes", "diverged"},
    "learning-rate-high": {"diverged", "spikes", *ONE_FOR_ALL, *OUTPUTS},
    "learning-rate-low": {*ONE_FOR_ALL, *OUTPUTS},
    "too-short": {*ONE_FOR_ALL, "repeated", "same", "empty", "length"},
    "nothing-learned": {"spikes", "overfitting", "overconfident", *ONE_FOR_ALL, *OUTPUTS},
    "by-heart": {"overfitting", "overconfident", *OUTPUTS},
    "same-output": OUTPUTS,
    "diverged": {"spikes"},
}
# What a sick curve shows by chance, and what would be the wrong advice beside the first.
CONTRADICTED = {
    "non-finite": {"learning-rate-low", "too-short"},
    "diverged": {"learning-rate-low", "too-short"},
    "learning-rate-high": {"learning-rate-low", "too-short", "overfitting", "overconfident"},
    "learning-rate-low": {"too-short", "overconfident"},
    "by-heart": {"too-short", "learning-rate-low"},
}


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
