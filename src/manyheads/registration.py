"""The rule of every table that plugins add to: a new name, and an entry of the right kind."""

from collections.abc import MutableMapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from manyheads.errors import UsageError, nearest

V = TypeVar("V")


def register(
    table: MutableMapping[str, V],
    what: str,
    name: str,
    entry: V,
    wanted: str,
    lacks: Sequence[str] = (),
) -> None:
    """Add an entry to a table; the same one again changes nothing.

    `what` is its kind ("a preset"), `wanted` says what such an entry is, `lacks` why this is none.

    Raises:
        UsageError: the name is no text, or empty, or taken; the entry lacks something.
    """
    if not isinstance(name, str) or not name:
        raise UsageError(f"The name of {what} is {name!r}: give a text, such as 'mine'.")
    if lacks:
        told = f"{entry!r} cannot be {what} {name!r}: it lacks {', '.join(lacks)}."
        raise UsageError(f"{told} {wanted}")
    if name in table and table[name] is not entry:
        raise UsageError(f"There is {what} {name!r} already: choose another name.")
    table[name] = entry


def found(table: dict[str, Any], name: str, none: str, known: str) -> Any:
    """Look up an entry; one that is "module:member" is imported when it is first asked for.

    Raises:
        UsageError: there is none; in words `none`, and `known` is what the others are.
    """
    if name not in table:
        raise UsageError(f"{none} {name!r}{nearest(name, table)}{known}: {', '.join(table)}.")
    if isinstance(entry := table[name], str):
        module, _, member = entry.partition(":")
        table[name] = getattr(import_module(module), member)
    return table[name]


def checked_ending(ending: str) -> str:
    """Check that a format is registered for the ending of a file name, as ".mine"."""
    if not isinstance(ending, str) or not ending.startswith(".") or ending != ending.lower():
        raise UsageError(f"The ending {ending!r} is none: give one such as '.mine'.")
    return ending
