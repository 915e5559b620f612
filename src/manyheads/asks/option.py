"""How a shell shows a parameter; written with the parameter's type.

The command line makes an option of each parameter that has one, HTTP and OpenAPI take the text as
its description.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

SEARCH, SAMPLING, ANSWERS, MACHINE = "Search", "Sampling", "Answers", "Machine"  # panels of help


@dataclass(frozen=True)
class Option:
    """A parameter on the command line: `--` and its name, if nothing else is said."""

    help: str
    panel: str | None = None  # of the help
    name: str | None = None  # of the option, where it is not the parameter's: "--beam"
    metavar: str | None = None
    argument: bool = False  # given by its place
    negative: bool = False  # has --no-, too
    read: Callable[[str], Any] | None = None  # makes the value of the option's text

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        """Describe the parameter in JSON Schema."""
        return handler(schema) | {"description": self.help}

    def flag(self, parameter: str) -> str:
        """Return the option of a parameter."""
        return self.name or f"--{parameter.replace('_', '-')}"


def option_of(field: FieldInfo) -> Option | None:
    """Return how a parameter is shown; None: the command line does not have it."""
    return next((each for each in field.metadata if isinstance(each, Option)), None)


def separated(text: str) -> tuple[str, ...]:
    """Read what commas separate."""
    return tuple(each.strip() for each in text.split(",")) if text else ()
