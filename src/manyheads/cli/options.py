"""Options of commands: parameters of requests, what `options.toml` describes, and --plugin."""

import inspect
import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from annotated_types import Ge, Le

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.asks.option import option_of
from manyheads.asks.request import Request
from manyheads.cli.options_table import TABLE, Plugins, load_plugins
from manyheads.cli.terminal import escape_controls
from manyheads.errors import UsageError

ENDLESS = 2**31 - 1  # a bound of this size is not worth showing


def command(words: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Make the command of these words, such as "convert timm"; it prints no control characters.

    It has the options of the requests that the function takes; the inputs of a `BatchRequest` stay
    empty, and a parameter that the function has of its own is not made an option.
    """
    signature = inspect.signature(function)
    described = ChainMap(TABLE.get(words, {}), TABLE[words.split()[0]], TABLE["*"])
    made: dict[str, tuple[type[Request], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, Request):
            names = [
                part
                for part, field in kind.model_fields.items()
                if option_of(field) and part not in signature.parameters
            ]
            made[name] = kind, names
            parameters += [_parameter(kind, part) for part in names]
        else:
            if get_origin(kind) is not Annotated:
                kind = Annotated[kind, _described(name, described[name])]
            kw_only = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kw_only, annotation=kind))

    @wraps(function)
    def run(*, plugin: list[str] | None = None, **options: Any) -> Any:
        escape_controls()
        load_plugins(plugin)
        requests = {}
        for name, (kind, names) in made.items():
            values = {part: _value(kind, part, options.pop(part)) for part in names}
            if (field := getattr(kind, "input_field", None)) is not None:
                values[field] = ()
            requests[name] = kind(**values)
        return function(**options, **requests)

    own = inspect.signature(run, follow_wrapped=False).parameters["plugin"]
    order = sorted(parameters, key=lambda each: each.default is not inspect.Parameter.empty)
    order.append(own.replace(annotation=Plugins))
    run.__signature__ = signature.replace(parameters=order)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in order}
    return run


def _described(name: str, described: str | Mapping[str, Any]) -> Any:
    """Return the option or argument that `options.toml` describes."""
    parts = {"help": described} if isinstance(described, str) else dict(described)
    if (metavar := parts.pop("argument", None)) is not None:
        return typer.Argument(metavar=metavar, **parts)
    flag = parts.pop("flag", f"--{name.replace('_', '-')}")
    return typer.Option(flag, rich_help_panel=parts.pop("panel", None), **parts)


def annotation(request: type[Request], name: str) -> Any:
    """Return what typer reads an option from: the type of a parameter, its bounds and its help."""
    field = request.model_fields[name]
    option = option_of(field)
    assert option is not None
    plain, bounds = _plain(field.annotation)
    kind = plain if plain in (int, float, bool, Path) else str
    several = get_origin(plain) is tuple and option.read is None
    common: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    if kind in (int, float):
        common |= _range([*field.metadata, *bounds])
    shown: Any = list[kind] if several else kind  # type: ignore[valid-type]
    optional = field.default is None or plain not in (int, float, bool, Path, str)
    if not field.is_required() and kind is not bool and (several or optional):
        shown = shown | None
    if option.argument:
        return Annotated[shown, typer.Argument(**common)]
    flag = option.flag(name)
    if option.negative:
        flag, shown = f"{flag}/--no-{flag[2:]}", bool | None
        common["show_default"] = False
    return Annotated[shown, typer.Option(flag, rich_help_panel=option.panel, **common)]


def _plain(kind: Any) -> tuple[Any, list[Any]]:
    """Return a type without None and without what is annotated to it, and that."""
    metadata: list[Any] = []
    while True:
        origin, parts = get_origin(kind), get_args(kind)
        if origin is Annotated:
            kind, metadata = parts[0], [*parts[1:], *metadata]
        elif origin in (Union, UnionType):
            kind = next(each for each in parts if each is not type(None))
        else:
            return kind, metadata


def _range(metadata: list[Any]) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for each in metadata:
        if isinstance(each, Ge):
            bounds["min"] = each.ge
        elif isinstance(each, Le) and float(str(each.le)) < ENDLESS:
            bounds["max"] = each.le
    return bounds


def _parameter(request: type[Request], name: str) -> inspect.Parameter:
    field = request.model_fields[name]
    default = inspect.Parameter.empty if field.is_required() else field.default
    if default == ():
        default = None  # as typer has it for a list
    kind, shown_as = inspect.Parameter.KEYWORD_ONLY, annotation(request, name)
    return inspect.Parameter(name, kind, default=default, annotation=shown_as)


def _value(request: type[Request], name: str, given: Any) -> Any:
    field = request.model_fields[name]
    if given is None:
        return field.default
    option = option_of(field)
    if option is not None and option.read is not None:
        return option.read(given)
    return tuple(given) if isinstance(given, list) else given


Remote = annotation(EvaluateRequest, "remote")
Split = annotation(EvaluateRequest, "split")
Final = annotation(EvaluateRequest, "final")
Metrics = annotation(EvaluateRequest, "metrics")
Device = annotation(LoadOptions, "device")
Threads = annotation(LoadOptions, "threads")


def read_image_size(text: str) -> tuple[int, int]:
    """Read N or HxW, or raise UsageError."""
    sides = re.fullmatch(r"(\d{1,9})(?:[xX](\d{1,9}))?", text)
    if sides is None or int(sides[1]) < 1 or (sides[2] and int(sides[2]) < 1):
        raise UsageError(
            f"--image-size is {text!r}: give pixels as one number, or as height and width, "
            "such as 384 or 256x384."
        )
    return int(sides[1]), int(sides[2] or sides[1])
