"""Write docs/recipe-keys.md: every key of a recipe, from the classes that validate it.

    python scripts/recipe_keys.py            # writes the page
    python scripts/recipe_keys.py --check    # exits with 1 if the page is another

The meaning of a key is the comment at its field, the text of its option, or its docstring.
"""

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from manyheads.models.presets import PRESETS
from manyheads.project.registry import TASKS, find_task

MEANINGS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PAGE = Path(__file__).parents[1] / "docs" / "recipe-keys.md"
HEAD = """# Every key of a recipe

Written by `python scripts/recipe_keys.py` from the classes that validate recipes: change the
comment at a field, not this page. `manyheads recipe NAME` prints a shipped recipe to start from;
`key=value` behind `manyheads train RECIPE` changes one. What all tasks share is listed once.
"""
MOST = 2**31 - 1  # a bound of this size is not worth showing
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
Line = tuple[str, str, str, str]  # key, type, default, meaning


def comments(cls: type) -> dict[str, str]:
    """Return for each field of a class the comment on its lines, or directly above them."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("manyheads"):
            continue
        lines = textwrap.dedent(inspect.getsource(base)).splitlines()
        (tree,) = ast.parse("\n".join(lines)).body
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                assert node.end_lineno is not None
                above = node.lineno - 2
                while lines[above].strip().startswith("#"):
                    above -= 1
                parts = [line.strip() for line in lines[above + 1 : node.lineno - 1]]
                parts += [
                    "#" + line.rpartition("  # ")[2]
                    for line in lines[node.lineno - 1 : node.end_lineno]
                    if "  # " in line
                ]
                text = " ".join(part.lstrip("# ") for part in parts if "noqa" not in part)
                if text:
                    found[node.target.id] = text
    return found


def limits(marks: Iterable[Any]) -> str:
    """Write the bounds of a number."""
    bounds = [(SIGNS[name], getattr(m, name)) for m in marks for name in SIGNS if hasattr(m, name)]
    bounds = [(sign, bound) for sign, bound in bounds if bound < MOST]
    return ", ".join(f"{sign} {bound:,}" for sign, bound in bounds)


def written(kind: Any) -> str:
    """Write a type as people read it."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        inner, *marks = parts
        return " ".join([written(inner), limits(marks)]).strip()
    if origin is Literal:
        return ", ".join(f'`"{each}"`' if isinstance(each, str) else f"`{each}`" for each in parts)
    if origin in (Union, UnionType):
        return " or ".join(written(each) for each in parts if each is not type(None))
    if origin in (tuple, list):
        inner = dict.fromkeys(written(each) for each in parts if each is not ...)
        return f"list of {', '.join(inner)}"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(kind, "table" if kind in (dict, Any) or origin is dict else kind.__name__)


def default(value: Any) -> str:
    """Write a default as TOML has it."""
    if value is dataclasses.MISSING or value is PydanticUndefined or value is Ellipsis:
        return "required"
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | list):
        return f"`[{', '.join(default(each).strip('`') for each in value)}]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def table_of(kind: Any) -> type | None:
    """Return the class of a table that a type is or may be."""
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and (
            issubclass(each, BaseModel) or dataclasses.is_dataclass(each)
        ):
            return each
    return None


def sentence(cls: type) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def meaning(key: str) -> str:
    """Look up a key; one of a table in [model] means what the key of the same name means there."""
    *tables, last = key.split(".")
    found: Any = MEANINGS
    for name in [*tables, last]:
        found = found.get(name, "") if isinstance(found, dict) else ""
    return found if isinstance(found, str) and found else shared(tables, last)


def shared(tables: list[str], name: str) -> str:
    """Look up the key of the outer table that has the same name."""
    outer = MEANINGS.get(tables[0], {}) if tables else {}
    return str(outer.get(name, ""))


def keys(cls: type, prefix: str) -> Iterator[Line]:
    """List the keys of a table, those of tables in it behind its own."""
    notes = comments(cls)
    hints = get_type_hints(cls, include_extras=True)
    if issubclass(cls, BaseModel):
        fields = {name: (each.default, each.metadata) for name, each in cls.model_fields.items()}
    else:
        own: Any = cls
        fields = {each.name: (each.default, []) for each in dataclasses.fields(own)}
    for name, (value, marks) in fields.items():
        key, kind = f"{prefix}{name}", hints[name]
        inner = table_of(kind)
        if inner is not None:
            about = notes.get(name) or sentence(inner)
            yield key, "table", "" if value is None else default(value) * (value is ...), about
            yield from keys(inner, f"{key}.")
            continue
        shown = " ".join([written(kind), limits(marks)]).strip()
        yield key, shown, default(value), notes.get(name) or meaning(key)


def cell(text: str) -> str:
    """Escape what a table cell cannot hold."""
    return re.sub(r"\s+", " ", text).replace("|", r"\|")


def rows(lines: list[Line]) -> list[str]:
    """Write a table."""
    head = ["| key | type | default | meaning |", "|---|---|---|---|"]
    return [*head, *(f"| `{key}` | {' | '.join(map(cell, rest))} |" for key, *rest in lines)]


def page() -> str:
    """Write the page."""
    by_task = {name: list(keys(find_task(name).recipe, "")) for name in TASKS}
    by_task = {
        name: [line for line in lines if line[0] not in ("task", "model")]
        for name, lines in by_task.items()
    }
    shared = [line for line in by_task["translate"] if all(line in own for own in by_task.values())]
    parts = [HEAD, "## All tasks\n"]
    tasks = ", ".join(f'`"{name}"`' for name in TASKS)
    first: list[Line] = [
        ("task", tasks, "required", "What is trained; it decides which tables there are."),
        ("model.preset", "text", "required", "Name of a preset: `manyheads models` lists them."),
        ("model.*", "", "of the preset", "Keys of the preset's model: see below."),
    ]
    parts += [*rows([*first, *shared]), ""]
    for name, lines in by_task.items():
        about = sentence(type(find_task(name)))
        parts += [f'## task = "{name}"\n', f"{about}\n"]
        parts += [*rows([line for line in lines if line not in shared]), ""]
    parts.append("## Keys of [model]\n")
    configs: dict[type, list[str]] = {}
    for name, config in PRESETS.items():
        configs.setdefault(type(config), []).append(name)
    for cls, names in configs.items():
        parts += [f"### {cls.__name__.removesuffix('Config')}\n"]
        shown = ", ".join(f"`{name}`" for name in names)
        parts += [f"Presets: {shown}. Defaults are those of the class; a preset has its own.\n"]
        parts += [*rows(list(keys(cls, "model."))), ""]
    return "\n".join(parts).rstrip() + "\n"


def main() -> None:
    """Write the page, or compare it."""
    text = page()
    if "--check" in sys.argv[1:]:
        sys.exit(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
