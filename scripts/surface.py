"""Write all that a user sees of the package as JSON: the golden file of tests/test_surface.py.

    python scripts/surface.py            # writes tests/golden/surface.json
    python scripts/surface.py -          # prints it
    python scripts/surface.py --check    # lists what differs, and exits with 1 if anything does

In it are commands with their options, schemas of recipes, presets, public names with signatures,
members for plugins, the OpenAPI of the server, schemas of requests and answers, and the imports
that pages and examples show. Help texts and descriptions are left out. So is the module that a
thing lives in: only the imports name modules, as they are documented. The same file comes out of
every process on every machine.
"""

import dataclasses
import enum
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

from manyheads.asks.option import Option

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "surface.json"
PACKAGES = ("manyheads", *(f"manyheads.{p}" for p in ("decode", "extend", "models", "nn", "train")))
AGAIN = "python scripts/surface.py"

MARKS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
    inspect.Parameter.KEYWORD_ONLY: "[by name] ",
    inspect.Parameter.POSITIONAL_ONLY: "[by place] ",
}

Tree = dict[str, Any]


# --- Values as text -------------------------------------------------------------------------------


def without_modules(text: str) -> str:
    """Shorten dotted names to their last part, and leave out addresses in memory.

    Examples:
        >>> without_modules("dict[str, torch.nn.modules.Module] | None")
        'dict[str, Module] | None'
        >>> without_modules("<function a.<locals>.b at 0x7f1>")
        '<function b>'
    """
    text = re.sub(r" at 0x[0-9a-f]+", "", text).replace("<locals>.", "")
    return re.sub(r"(?:\b[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", text)


def named(value: object) -> str:
    """Write a value of a program: functions and classes by name."""
    if isinstance(value, type) or inspect.isroutine(value):
        return str(getattr(value, "__name__", value))
    if isinstance(value, frozenset | set):
        return "{" + ", ".join(sorted(map(named, value))) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{named(k)}: {named(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(named, value)) + ")"
    if isinstance(value, str | Path):
        return repr(str(value))
    return without_modules(repr(value))


def annotation(value: Any) -> str:
    """Write an annotation without modules, alike in every version of Python."""
    if value is inspect.Parameter.empty:
        return ""
    if value is None or value is type(None):
        return "None"
    if isinstance(value, ForwardRef):
        return without_modules(value.__forward_arg__)
    origin, arguments = get_origin(value), get_args(value)
    if origin in (Union, UnionType):
        return " | ".join(map(annotation, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is Annotated:
        kind, *bounds = arguments
        told = (
            re.sub(r"<(function|class) [^>]*>", "...", without_modules(repr(b)))
            for b in bounds
            if not isinstance(b, Option)  # how a shell shows it
        )
        bounded = [annotation(kind), *told]
        return f"Annotated[{', '.join(bounded)}]" if len(bounded) > 1 else bounded[0]
    if isinstance(value, list):  # the parameters of a Callable
        return f"[{', '.join(map(annotation, value))}]"
    if arguments:
        name = without_modules(inspect.formatannotation(origin))
        return f"{name}[{', '.join(map(annotation, arguments))}]"
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return "..." if value is ... else without_modules(text)


def signature(value: Any) -> Any:
    """Describe how something is called: each parameter with kind, annotation and default."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "not described"
    parameters = []
    # The order of parameters that are given by name means nothing.
    by_name = [n for n, p in found.parameters.items() if p.kind is p.KEYWORD_ONLY]
    in_order = [n for n in found.parameters if n not in by_name]
    for name in (*in_order, *sorted(by_name)):
        each = found.parameters[name]
        mark = MARKS.get(each.kind, "")
        text = f"{mark}{name}" + (f": {kind}" if (kind := annotation(each.annotation)) else "")
        if each.default is not each.empty:
            text += f" = {named(each.default)}"
        parameters.append(text)
    return [*parameters, f"-> {annotation(found.return_annotation)}"]


# --- Schemas --------------------------------------------------------------------------------------


def plain_schema(schema: Mapping[str, Any], definitions: bool = True) -> Any:
    """Remove titles and descriptions; with `definitions`, write each reference out."""
    known = schema.get("$defs", {}) if definitions else {}

    def plain(
        value: Any, within: tuple[str, ...], names: bool = False, unordered: bool = False
    ) -> Any:
        """`names`: keys are the names of a user's fields, not the words of a schema."""
        if isinstance(value, list):
            plains = [plain(each, within) for each in value]
            return sorted(plains) if unordered else plains
        if not isinstance(value, Mapping):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str) and (name := reference.rpartition("/")[2]) in known:
            if name in within:
                return {"again": len(within) - within.index(name)}
            rest = {key: each for key, each in value.items() if key != "$ref"}
            return plain({**known[name], **rest}, (*within, name))
        skipped = set() if names else {"title", "description", "summary"}
        if definitions and not names:
            skipped |= {"$defs"}
        return {
            key: plain(
                each,
                within,
                names=not names and key in ("properties", "schemas"),
                unordered=not names and key == "required" and isinstance(each, list),
            )
            for key, each in value.items()
            if key not in skipped
        }

    return plain(schema, ())


def schema_of(kind: Any) -> Any:
    """Return the JSON schema of a type that pydantic knows."""
    from pydantic import TypeAdapter

    return plain_schema(TypeAdapter(kind).json_schema())


# --- Parts of the surface -------------------------------------------------------------------------


def commands() -> Tree:
    """List commands by name, each with its arguments and options."""
    import typer

    from manyheads.cli.main import whole

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        context = typer.Context(command, info_name=words[-1])
        own: Tree = {}
        place = 0
        for param in command.get_params(context):
            if param.param_type_name == "argument":
                place += 1
                own[f"argument {place}"] = _option(param)
            else:
                own[" ".join((*param.opts, *param.secondary_opts))] = _option(param)
        yield " ".join(words), own
        if hasattr(command, "list_commands"):
            for name in sorted(command.list_commands(context)):
                yield from walk(command.get_command(context, name), (*words, name))

    return dict(walk(whole(), ("manyheads",)))


def _option(param: Any) -> Tree:
    """Describe an option or an argument; what is as usual is left out."""
    kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
    choices = [named(each.value) for each in kind] if _is_enum(kind) else []
    found: Tree = {
        # What reads the text of an option is nobody's concern; its metavar says what is read.
        "type": "parsed text" if info.parser else annotation(kind),
        "default": _default(param),
    }
    unusual = {
        "required": param.required,
        "multiple": param.multiple,
        "choices": choices,
        "min": param.min,
        "max": param.max,
        "metavar": param.metavar,
        "variable": param.envvar,
        "flag": getattr(param, "is_flag", False),
        "counts": getattr(param, "count", False),
        "hidden": param.hidden,
        "clamped": info.clamp,
        "any case": not info.case_sensitive,
        "must exist": info.exists,
    }
    found |= {key: value for key, value in unusual.items() if value not in (None, False, [])}
    return found if param.nargs == 1 else found | {"values": param.nargs}


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _default(param: Any) -> Any:
    value = param.default
    value = value.value if isinstance(value, enum.Enum) else value
    return value if value is None or isinstance(value, str | int | float | bool) else named(value)


def recipes() -> Tree:
    """Return the schema of each task's recipes, and of a [decode] table."""
    from manyheads.asks.decode_config import DecodeConfig
    from manyheads.project.registry import TASKS, find_task

    found = {f"task {name}": schema_of(find_task(name).recipe) for name in sorted(TASKS)}
    return found | {"decode": schema_of(DecodeConfig)}


def presets() -> Tree:
    """Return the fields of each preset."""
    from manyheads.models.presets import PRESETS

    def fields(config: Any) -> Tree:
        return {"class": type(config).__name__} | {
            each.name: fields(value)
            if dataclasses.is_dataclass(value := getattr(config, each.name))
            else named(value)
            for each in dataclasses.fields(config)
        }

    return {name: fields(PRESETS[name]) for name in sorted(PRESETS)}


def public_names() -> Tree:
    """Describe each name that a public package lists."""
    found: Tree = {}
    for package in PACKAGES:
        module = import_module(package)
        found[package] = {name: describe(getattr(module, name)) for name in sorted(module.__all__)}
    found["manyheads"]["__version__"] = "a text"
    return found


def describe(value: Any) -> Any:
    """Describe a public thing: how it is called, and the public members of a class."""
    if isinstance(value, ModuleType):
        called = {"called": signature(value)} if callable(value) else {}
        return {"kind": "package"} | called
    if inspect.isclass(value):
        return {"kind": "class", "called": signature(value)} | _members(value)
    if inspect.isroutine(value):
        return {"kind": "function", "called": signature(value)}
    if isinstance(value, Mapping):
        return {"kind": "table", "keys": sorted(map(named, value))}
    if isinstance(value, str | int | float | tuple | frozenset | set):
        return {"kind": "value", "is": named(value)}
    return {"kind": "type", "is": annotation(value)}


def _members(kind: type) -> Tree:
    """List public members that a class has of its own, or of bases in the package."""
    members: Tree = {}
    for home in reversed(kind.__mro__):
        if home.__module__.partition(".")[0] == "manyheads":
            for name in {**vars(home), **inspect.get_annotations(home)}:
                if name != "model_config" and (not name.startswith("_") or name == "__call__"):
                    members[name] = _member(kind, name)
    members = {name: members[name] for name in sorted(members)}
    return {"members": members, "fields": _fields(kind)}


def _member(kind: type, name: str) -> Any:
    value = inspect.getattr_static(kind, name, None)
    if isinstance(value, property):
        return f"property {annotation(inspect.signature(value.fget).return_annotation)}"  # type: ignore[arg-type]
    if type(value).__name__ in ("cached_property", "member_descriptor", "_tuplegetter"):
        return "attribute"
    if isinstance(value, classmethod | staticmethod):
        return [type(value).__name__, *signature(getattr(kind, name))]
    if inspect.isroutine(value):
        return signature(value)
    if name in _fields(kind):
        return "field"
    told = next((a[name] for h in kind.__mro__ if name in (a := inspect.get_annotations(h))), None)
    text = "attribute" if told is None else f"attribute: {annotation(told)}"
    return text if value is None else f"{text} = {named(value)}"


def _fields(kind: Any) -> list[str]:
    """Name the fields of a dataclass, a named tuple or a pydantic model; `called` has the rest."""
    if dataclasses.is_dataclass(kind):
        return sorted(each.name for each in dataclasses.fields(kind))
    return sorted(getattr(kind, "model_fields", getattr(kind, "_fields", ())))


def plugins() -> Tree:
    """Describe the members that docs/extending.md names in its tables, and where they are."""
    import manyheads
    from manyheads.extend import Predictor, TorchEngine
    from manyheads.train import Task

    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    found: Tree = {}
    tables = re.findall(r"^\| member \|.*\n\|-.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [line.split("|")[1] for table in tables for line in table.splitlines()]
    names = {re.sub(r"\W.*", "", word) for row in rows for word in re.findall(r"`([^`]+)`", row)}
    homes: dict[str, Any] = {"Pipeline": manyheads.Pipeline, "Predictor": Predictor}
    for name in sorted(names | {"request", "respond", "answer"}):
        for home, kind in homes.items():
            if name in dir(kind) or name in {
                key for each in kind.__mro__ for key in inspect.get_annotations(each)
            }:
                found[f"{home}.{name}"] = _member(kind, name)
        if not any(key.endswith(f".{name}") for key in found):
            found[f"?.{name}"] = "is described, and is not there"
    both: dict[str, Any] = {"Task": Task, "TorchEngine": TorchEngine}
    for home, kind in both.items():
        members = _members(kind)["members"]
        found |= {f"{home}.{name}": member for name, member in members.items()}
    return found


def openapi() -> Any:
    """Return the server's OpenAPI without descriptions."""
    from manyheads.web.app import create_app
    from manyheads.web.served import ServedOptions
    from manyheads.web.settings import Limits, Settings

    app: Any = create_app(ServedOptions().make(Limits()), Settings()).app
    found = json.loads(json.dumps(app.openapi()))
    del found["info"]["version"]
    return plain_schema(found, definitions=False)


def requests_and_answers() -> Tree:
    """Return the schemas of all requests and answers that are asked for, by class."""
    import manyheads.extend as public

    def below(kind: Any) -> list[Any]:
        # Not the bodies that the server makes of them: OpenAPI has these.
        return [
            each
            for each in kind.__subclasses__()
            if each.__module__.startswith("manyheads.") and ".web." not in f"{each.__module__}."
        ]

    def all_below(kind: Any) -> Iterator[Any]:
        for each in below(kind):
            yield each
            yield from all_below(each)

    kinds = dict.fromkeys([*all_below(public.Request), *all_below(public.Answer)])
    return {
        each.__name__: schema_of(each)
        for each in sorted(kinds, key=lambda kind: kind.__name__)
        if each.__name__ in public.__all__ or not below(each)
    }


def imports() -> list[str]:
    """List what pages and examples import from the package, and whether it is there."""
    pages = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("README*.md")])
    texts = [_code(page.read_text(encoding="utf-8")) for page in pages]
    texts += [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("examples/**/*.py"))]
    found: set[tuple[str, str]] = set()
    for text in texts:
        for module, names in re.findall(r"from (manyheads[\w.]*) import (\([^)]*\)|[\w, ]+)", text):
            words = re.sub(r"#.*|[()]", "", names).replace("\n", " ").split(",")
            found |= {(module, word.split()[0]) for word in words if word.strip()}
        found |= {
            (module, "")
            for module in re.findall(r"^(?:>>> )?import (manyheads[\w.]*)", text, re.MULTILINE)
        }
    return [_imported(module, name) for module, name in sorted(found)]


def _code(page: str) -> str:
    """Return the code of a page; what a diff shows is not imported by a reader."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return "\n".join(text for language, text in blocks if language != "diff") + "\n".join(
        re.findall(r"`((?:from|import) manyheads[^`]*)`", page)
    )


def _imported(module: str, name: str) -> str:
    words = f"from {module} import {name}" if name else f"import {module}"
    try:
        scope: dict[str, Any] = {}
        exec(words, scope)
    except ImportError as error:
        return f"{words}: {type(error).__name__}"
    return words


def surface() -> Tree:
    """Collect everything."""
    found = {
        "commands": commands(),
        "recipes": recipes(),
        "presets": presets(),
        "public names": public_names(),
        "plugins": plugins(),
        "openapi": openapi(),
        "requests and answers": requests_and_answers(),
        "imports": dict.fromkeys(imports(), ""),
    }
    ordered: Tree = json.loads(json.dumps(found, sort_keys=True, ensure_ascii=False))
    return ordered


# --- Comparison -----------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value with the keys that lead to it; a list of plain values is one value."""
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        for index, each in enumerate(value):
            yield from leaves(each, (*path, str(index)))
    else:
        yield path, value


def differences(before: Tree, now: Tree) -> list[str]:
    """Name what went missing, what changed and what is new."""
    old, new = dict(leaves(before)), dict(leaves(now))
    told = [f"missing: {place}" for place in _names(old.keys() - new.keys(), new)]
    told += [
        f"changed: {' > '.join(path)}: {_change(old[path], new[path])}"
        for path in sorted(old.keys() & new.keys())
        if old[path] != new[path]
    ]
    return told + [f"new: {place}" for place in _names(new.keys() - old.keys(), old)]


def _change(before: Any, now: Any) -> str:
    """Say how a value changed; of lists, the entries."""
    if isinstance(before, list) and isinstance(now, list):
        lost, won = ([e for e in a if e not in b] for a, b in ((before, now), (now, before)))
        if lost or won:
            return f"{lost} became {won}"
    return f"{before!r} became {now!r}"


def _names(paths: Iterable[tuple[str, ...]], others: Iterable[tuple[str, ...]]) -> list[str]:
    """Shorten paths to the first key that the other side lacks: one line for a whole command."""
    known = {path[:length] for path in others for length in range(len(path) + 1)}
    shortest = {
        next(path[:n] for n in range(1, len(path) + 1) if path[:n] not in known or n == len(path))
        for path in paths
    }
    return [" > ".join(path) for path in sorted(shortest)]


def written(found: Any, depth: int = 0) -> str:
    """Write it as the golden file has it: a line for each thing, such as a command or a class."""
    if depth == 3 or not isinstance(found, dict) or not found:
        return json.dumps(found, ensure_ascii=False)
    indent = " " * (depth + 1)
    lines = [
        f"{indent}{json.dumps(key, ensure_ascii=False)}: {written(each, depth + 1)}"
        for key, each in found.items()
    ]
    text = "{\n" + ",\n".join(lines) + f"\n{' ' * depth}}}"
    return text if depth else f"{text}\n"


def main() -> None:
    """Write, print or compare."""
    found = surface()
    if sys.argv[1:] == ["-"]:
        sys.stdout.write(written(found))
    elif sys.argv[1:] == ["--check"]:
        told = differences(json.loads(GOLDEN.read_text(encoding="utf-8")), found)
        print("\n".join(told) if told else "a user sees the same as before")
        sys.exit(bool(told))
    else:
        GOLDEN.write_text(written(found), encoding="utf-8")


if __name__ == "__main__":
    main()
