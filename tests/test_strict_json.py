"""What is written as JSON is JSON."""

import json
import math
from typing import Any

import pytest

from manyheads.strict_json import dumps


def strict(text: str) -> Any:
    """Read JSON as other programs do."""

    def refuse(literal: str) -> None:
        raise ValueError(f"{literal} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": [1.5, "ü\u2028"], "b": None}, '{"a": [1.5, "ü\u2028"], "b": null}'),
        (math.nan, "null"),
        ({"a": (math.inf, {"b": -math.inf}), "c": 1}, '{"a": [null, {"b": null}], "c": 1}'),
        ({math.nan: 1}, '{"null": 1}'),
    ],
)
def test_numbers_that_are_not_finite_become_null(value: object, written: str) -> None:
    """At any depth; everything else is written as it is."""
    assert dumps(value) == written
    strict(written)


def test_the_layout_is_as_asked() -> None:
    """Indented, compact, or in ASCII."""
    assert dumps({"a": math.nan}, indent=1) == '{\n "a": null\n}'
    assert dumps(["ü", 1], separators=(",", ":"), ensure_ascii=True) == r'["\u00fc",1]'
