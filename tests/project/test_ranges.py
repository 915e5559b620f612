"""Numbers that no recipe can mean: where the limits are."""

import math
from typing import Any

import pytest

from manyheads.errors import RecipeError
from manyheads.project.recipe_limits import check_numbers, check_range, short


@pytest.mark.parametrize(
    ("most", "beyond"),
    [
        ({"size": 2**31 - 1}, {"size": 2**31}),
        ({"size": 1 - 2**31}, {"size": -(2**31)}),
        ({"seed": 2**63 - 1}, {"seed": 2**63}),
        ({"rate": 1e308}, {"rate": math.inf}),
        ({"rate": [1.0]}, {"rate": [1.0, -math.inf]}),
        ({"a": {"b": {"c": [[1]]}}}, {"a": {"b": {"c": [[[1]]]}}}),
    ],
)
def test_numbers_that_a_key_can_have(most: dict[str, Any], beyond: dict[str, Any]) -> None:
    """32 bits for sizes, 64 for the seed, finite numbers, five levels."""
    check_numbers(most)
    with pytest.raises(RecipeError, match=r"finite, whole ones at most|nested too deeply"):
        check_numbers(beyond)


@pytest.mark.parametrize(
    ("key", "whole", "least", "most"),
    [
        ("dim", True, 1, 2**40),
        ("layers", True, 1, 1000),
        ("depths", True, 1, 1000),
        ("scale", False, 0, 2**31 - 1),
        ("dropout", False, 0, 0.99),
        ("score_bias", False, 1 - 2**31, 2**31 - 1),
    ],
)
def test_values_of_a_model(key: str, whole: bool, least: float, most: float) -> None:
    """The least and the largest of each kind."""
    for value in (least, most):
        check_range(key, value, whole=whole)
    for wrong in (least - 1, *([] if key == "dim" else [most + 1]), math.nan):
        with pytest.raises(RecipeError, match=rf"model\.{key} is .*: it must be at least"):
            check_range(key, wrong, whole=whole)


def test_values_in_lists() -> None:
    """Sizes, each at least 1; only a padding may be absent."""
    check_range("depths", (1, 1000), whole=True)
    check_range("paddings", [0, 1], whole=True)
    for key, wrong in (("depths", [1, 0]), ("paddings", [1, -1])):
        with pytest.raises(RecipeError, match=rf"model\.{key} is {wrong[1]}"):
            check_range(key, wrong, whole=True)


def test_a_message_shows_the_first_200_characters() -> None:
    """Two of them are the quotes; what Python itself does not write is not shown."""
    assert short("x" * 198) == repr("x" * 198)
    assert short("x" * 199) == f"'{'x' * 199}..."
    assert short(10**5000) == "a very long int"
