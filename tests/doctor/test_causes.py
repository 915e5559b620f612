"""What follows from a finding is its evidence."""

from manyheads.data.checks.issue_types import Severity
from manyheads.doctor.finding import CONTRADICTED, FOLLOWS, Finding, by_cause


def finding(kind: str, severity: Severity = "warning") -> Finding:
    return Finding(
        kind=kind, severity=severity, what=f"The {kind}.", evidence=("numbers",), remedy="Do."
    )


def test_consequences_are_evidence() -> None:
    """Loops of a model that learned nothing need no remedy; copies in the data do."""
    given = [
        finding("repeated"),
        finding("seen-before", "error"),
        finding("nothing-learned", "error"),
    ]
    found = by_cause(given)
    assert [each.kind for each in found] == ["seen-before", "nothing-learned"]
    assert found[1].evidence == ("numbers", "hence: The repeated.")


def test_the_deepest_cause_tells_all() -> None:
    """One sentence for all follows from the rate, and its loops with it."""
    (found,) = by_cause(
        [finding("same"), finding("same-output", "error"), finding("learning-rate-high", "error")]
    )
    assert found.kind == "learning-rate-high"
    assert len(found.evidence) == 3


def test_what_contradicts_is_left_out() -> None:
    """Nobody is told to learn faster and slower."""
    (found,) = by_cause([finding("learning-rate-low"), finding("diverged", "error")])
    assert (found.kind, found.evidence) == ("diverged", ("numbers",))


def test_each_kind_once_and_the_worst_first() -> None:
    """Two ways to see one thing are one finding."""
    given = [
        finding("x", "note"),
        finding("learning-rate-low"),
        finding("learning-rate-low", "error"),
    ]
    assert [(each.kind, each.severity) for each in by_cause(given)] == [
        ("learning-rate-low", "error"),
        ("x", "note"),
    ]


def test_no_circles() -> None:
    """No finding follows from what follows from it, so none gets lost."""
    for cause, consequences in FOLLOWS.items():
        for other in consequences:
            assert cause not in FOLLOWS.get(other, ()), (cause, other)
            assert cause not in CONTRADICTED.get(other, ()), (cause, other)
