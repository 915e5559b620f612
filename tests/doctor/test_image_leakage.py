"""How much of the validation must be known before it is said."""

from types import SimpleNamespace
from typing import Any

import pytest

from manyheads.doctor.image_leakage import images_seen_before


@pytest.mark.parametrize(
    ("doubled", "severity"),
    [(0, None), (1, None), (2, "warning"), (19, "warning"), (20, "error")],
)
def test_from_one_in_a_hundred(doubled: int, severity: str | None) -> None:
    """One that is there by chance is none; a tenth is an error."""
    digests = [str(number) for number in range(200)]
    train: Any = SimpleNamespace(digests=digests[:doubled] + ["other"] * 50, name=str)
    valid: Any = SimpleNamespace(digests=digests, name=str)
    sample: Any = SimpleNamespace(seen=(train, valid), share=1)
    found = list(images_seen_before(sample))
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all(each.evidence[0] == f"{doubled} of 200 validation images" for each in found)
