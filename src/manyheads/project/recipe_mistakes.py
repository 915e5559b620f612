"""Mistakes in the tables of a recipe, in words, with the key of each."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from manyheads.errors import nearest
from manyheads.project.recipe_limits import short


def explain(error: ValidationError, table: type, prefix: Sequence[str] = ()) -> list[str]:
    """List the mistakes in a table of this type, each with its full key."""
    return [_line(detail, table, prefix) for detail in error.errors()]


def _line(detail: ErrorDetails, table: type, prefix: Sequence[str]) -> str:
    location = [str(part) for part in detail["loc"]]
    key = ".".join([*prefix, *location])
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return unknown(key, location[-1], _allowed(table, location[:-1]))
    if detail["type"] in ("missing", "missing_argument"):
        return f"{key} is missing."
    if detail["type"] in ("dataclass_type", "dict_type", "model_type"):
        return f"{key} = {short(detail['input'])}: it must be a table of keys and values."
    if detail["type"] == "tuple_type":
        given = short(detail["input"])
        return f"{key} = {given}: it must be a list: [{given}]."
    reason = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "value_error":  # about several keys of a table together
        return f"{key}: {reason}." if key else f"{reason}."
    return f"{key} = {short(detail['input'])}: {reason[0].lower()}{reason[1:]}."


def unknown(key: str, name: str, allowed: Sequence[str]) -> str:
    """Name a key that there is not, the nearest one, and all."""
    return f"there is no key {key!r}{nearest(name, allowed)}Allowed: {', '.join(allowed)}."


def _allowed(table: Any, location: Sequence[str]) -> list[str]:
    """List the keys of the table at a location in a recipe."""
    for name in location:
        if isinstance(table, type) and issubclass(table, BaseModel):
            table = table.model_fields[name].annotation
        else:
            (table,) = (field.type for field in fields(table) if field.name == name)
        if isinstance(table, UnionType):  # an optional table
            table = get_args(table)[0]
    if is_dataclass(table):
        return [field.name for field in fields(table)]
    return list(getattr(table, "model_fields", {}))
