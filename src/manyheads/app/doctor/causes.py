"""Which findings follow from which: the first are told, the others are their evidence."""

from dataclasses import replace

from manyheads.app.doctor.finding import Finding
from manyheads.data.damage import SEVERITIES

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
    # Causes in the order of FOLLOWS: what two of them explain is told with the first.
    told: dict[str, str] = {}
    for cause, consequences in FOLLOWS.items():
        if cause in left and cause not in told:
            for kind in consequences:
                told.setdefault(kind, cause)
    return [
        _with_consequences(
            each, [other for kind, other in left.items() if told.get(kind) == each.kind]
        )
        for each in worst
        if each.kind not in told and each is left.get(each.kind)
    ]


def _with_consequences(cause: Finding, consequences: list[Finding]) -> Finding:
    hence = [f"hence: {each.what}" for each in consequences]
    return replace(cause, evidence=(*cause.evidence, *hence))
