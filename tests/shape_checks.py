"""Checks of shapes and types that ran once are not repeated for equal shapes and types.

jaxtyping and beartype decide by the types, dtypes and shapes of what a function takes and returns:
what passed once passes again. A training loop calls the same functions with the same shapes
hundreds of times, and checking each call takes longer than the small models of the tests compute.
Whatever has a shape, dtype or type that is new to the function is checked as before, and so is
everything else whose check depends on more than these (lists, dicts, names of sizes in braces).
"""

import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import jaxtyping
import numpy as np
from torch import Tensor, nn

BY_VALUE = ("{", "Literal", "Annotated")  # in annotations whose check needs what is passed
NEW: Any = object()  # no call had it
UNKNOWN: Any = object()  # the check needs the value itself

jaxtyped = jaxtyping.jaxtyped
_returned = threading.local()


def install() -> None:
    """Let jaxtyping's import hook decorate functions with `remembering`."""
    jaxtyping.jaxtyped = remembering  # type: ignore[assignment]


def remembering(item: Any = NEW, *, typechecker: Any) -> Any:
    """`jaxtyping.jaxtyped`, which checks a function's call once for equal shapes and types."""
    if item is NEW:
        return functools.partial(remembering, typechecker=typechecker)
    checked = jaxtyped(item, typechecker=typechecker)
    if not (inspect.isfunction(item) and decided_by_shapes(item)):
        return checked

    seen: dict[Any, set[Any]] = {}  # of what was taken: all that was returned

    @functools.cache
    def checking_output() -> Callable[..., Any]:
        @functools.wraps(item)
        def output(*_args: Any, **_kwargs: Any) -> Any:
            return _returned.value

        return jaxtyped(output, typechecker=typechecker)

    @functools.wraps(item)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if jaxtyping.config.jaxtyping_disable:
            return item(*args, **kwargs)
        taken = sort_of(args), *((name, sort_of(value)) for name, value in kwargs.items())
        try:
            before = seen.get(taken)
        except TypeError:  # sizes that are symbols have no hash
            return checked(*args, **kwargs)
        if before is None:
            result = checked(*args, **kwargs)
            if not unknown(taken):
                returned = sort_of(result)
                seen[taken] = set() if unknown(returned) else {returned}
            return result
        result = item(*args, **kwargs)
        returned = sort_of(result)
        if returned not in before:
            _returned.value = result
            try:
                checking_output()(*args, **kwargs)
            finally:
                del _returned.value
            if not unknown(returned):
                before.add(returned)
        return result

    return call


def decided_by_shapes(function: Callable[..., Any]) -> bool:
    """If none of its annotations is checked by a value."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        return False
    if function.__module__ == "manyheads.models.presets":
        return False  # it asks who called it, and knows jaxtyping's own functions only
    hints = " ".join(map(repr, function.__annotations__.values()))
    return not any(word in hints for word in BY_VALUE)


def sort_of(value: Any) -> Any:
    """What a check can tell of a value, or UNKNOWN."""
    kind = type(value)
    if issubclass(kind, Tensor | np.ndarray):
        return kind, value.shape, value.dtype
    if kind is tuple:
        return tuple(map(sort_of, value))
    return kind if checked_by_type(kind) else UNKNOWN  # type: ignore[arg-type]


def unknown(sort: Any) -> bool:
    """If UNKNOWN is in it."""
    return sort is UNKNOWN or (isinstance(sort, tuple) and any(map(unknown, sort)))


@functools.cache
def checked_by_type(kind: type) -> bool:
    """If checks look at no part of such a value: it has none, or they are attributes."""
    if issubclass(kind, nn.Module) or is_dataclass(kind) or hasattr(kind, "_fields"):
        return True
    if kind is str:
        return True
    return kind is not type and not hasattr(kind, "__iter__") and not hasattr(kind, "__getitem__")
