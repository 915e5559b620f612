"""Messages name parameters in backticks, as `final=True`; the command line writes its options."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyheads.asks.request import Request

# Options that do not have the parameter's name, of commands without a request.
OTHER = {
    "architecture": "--arch",
    "base_model": "--from",
    "folder": "--from",
    "hardware": "--for",
    "texts": "--text",
}
_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`\s]+))?`")


def with_flags(message: str) -> str:
    """Write options for the parameters that a message names.

    Examples:
        >>> with_flags("set `final=True`, or `split='valid'`; leave `n_best` out")
        'set --final, or --split valid; leave --n-best out'
        >>> with_flags("`recase=False` leaves capitals alone")
        '--no-recase leaves capitals alone'
    """
    return _PARAMETER.sub(_flag, message)


def _flag(parameter: re.Match[str]) -> str:
    from manyheads.asks.request import Request  # imports pydantic

    name, value = parameter[1], parameter[2]
    flag = {**OTHER, **dict(_renamed(Request))}.get(name, f"--{name.replace('_', '-')}")
    if value == "False":
        return f"--no-{flag.removeprefix('--')}"
    if value in (None, "True"):
        return flag
    return f"{flag} {value.strip(chr(34) + chr(39))}"


def _renamed(request: "type[Request]") -> Iterator[tuple[str, str]]:
    """Yield the options of all requests that are imported, where they have a name of their own."""
    from manyheads.asks.option import option_of

    for kind in request.__subclasses__():
        for name, field in kind.model_fields.items():
            if (option := option_of(field)) and option.name is not None:
                yield name, option.name
        yield from _renamed(kind)
