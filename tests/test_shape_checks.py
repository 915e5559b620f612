"""A check that is not repeated is one that would have passed: whatever is new is checked."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import torch
from beartype import beartype
from jaxtyping import Float, Int, TypeCheckError
from torch import Tensor

from manyheads.nn.layers.dropout import Dropout
from tests.shape_checks import remembering

F = TypeVar("F", bound=Callable[..., Any])


def checked(function: F) -> F:
    found: F = remembering(typechecker=beartype)(function)
    return found


@checked
def pair(x: Float[Tensor, "row column"], y: Float[Tensor, "column"]) -> Float[Tensor, "row"]:
    return x @ y if y.sum() > 0 else x.T @ y.new_ones(len(x))


X, Y = torch.ones(2, 3), torch.ones(3)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.ones(2, 3, dtype=torch.int64), Y),
        (torch.ones(1, 2, 3), Y),
        (None, Y),
        ([[1.0]], Y),
    ],
    ids=["dtype", "dimensions", "nothing", "list"],
)
def test_arguments_that_are_new(x: Any, y: Tensor) -> None:
    """After calls that passed, too."""
    for _ in range(3):
        assert pair(X, Y).tolist() == [3, 3]
        with pytest.raises(TypeCheckError):
            pair(x, y)


def test_a_result_that_is_new() -> None:
    """Arguments as of a call that passed, and a result of another shape."""
    for _ in range(3):
        assert pair(X, Y).tolist() == [3, 3]
        with pytest.raises(TypeCheckError, match="return value"):
            pair(X, -Y)


def test_sizes_that_belong_together() -> None:
    """Each alone has passed before."""

    @checked
    def add(x: Float[Tensor, "n"], y: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        return x + y

    add(torch.ones(2), torch.ones(2))
    add(torch.ones(1), torch.ones(1))
    with pytest.raises(TypeCheckError):
        add(torch.ones(2), torch.ones(1))
    with pytest.raises(TypeCheckError):
        add(torch.ones(2), y=torch.ones(1))


def test_what_is_in_containers() -> None:
    """A tuple's members count; of a list, whatever it holds this time is checked."""

    @checked
    def first(x: tuple[Int[Tensor, "n"], ...] | list[Int[Tensor, "n"]]) -> Int[Tensor, "n"]:
        return x[0]

    good, bad = torch.ones(2, dtype=torch.int64), torch.ones(2)
    for box in (tuple, list):
        first(box([good]))
        with pytest.raises(TypeCheckError):
            first(box([bad]))


@pytest.mark.parametrize("form", ["sized", "named"])
def test_sizes_that_are_values(form: str) -> None:
    """Of a function whose annotation needs a number that it takes, each call is checked."""

    @checked
    def sized(length: int, given: int) -> Float[Tensor, "{length}"]:
        return torch.ones(given)

    @checked
    def named(*, length: int, given: int) -> Float[Tensor, "{length}"]:
        return torch.ones(given)

    call: Callable[[int, int], Tensor] = (
        sized if form == "sized" else lambda length, given: named(length=length, given=given)
    )
    assert len(call(2, 2)) == 2
    with pytest.raises(TypeCheckError):
        call(3, 2)


def test_equal_shapes_are_checked_once() -> None:
    """The reason for all this; the function itself runs each time."""
    checks, calls = 0, 0

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        inner = beartype(function)

        def check(*args: Any, **kwargs: Any) -> Any:
            nonlocal checks
            checks += 1
            return inner(*args, **kwargs)

        return check

    def double(x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        nonlocal calls
        calls += 1
        return 2 * x

    counted = remembering(double, typechecker=counting)
    for length in (1, 2, 1, 2, 2):
        counted(torch.ones(length))
    assert calls == 5
    assert checks == 4  # of what is taken, and of what is returned, for each of two lengths


def test_the_package_is_checked() -> None:
    """Its functions of tensors are decorated so when the suite imports them."""
    layer = Dropout(0.1)
    layer(torch.ones(2, 3))
    with pytest.raises(TypeCheckError):
        layer([1.0])
