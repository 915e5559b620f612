"""How a stored model is loaded."""

from typing import Annotated, Any

from annotated_types import Ge, Le
from pydantic import BeforeValidator

from manyheads.asks.option import MACHINE, Option
from manyheads.asks.request import Request
from manyheads.bounded_numbers import MOST_PIXELS


def _two_sides(size: Any) -> tuple[int, int]:
    sides = size if isinstance(size, tuple | list) else (size, size)
    if len(sides) != 2 or not all(type(n) is int and 1 <= n <= MOST_PIXELS for n in sides):
        raise ValueError(
            f"give one number of pixels or two, height and width, from 1 to {MOST_PIXELS:,}"
        )
    return sides[0], sides[1]


class LoadOptions(Request):
    """How a stored model is loaded."""

    engine: Annotated[
        str, Option("What runs the model: torch, or an engine that it was exported to.", MACHINE)
    ] = "torch"
    device: Annotated[
        str | None, Option("Device, such as cpu or cuda:0; the best there is by default.", MACHINE)
    ] = None
    threads: Annotated[
        Annotated[int, Ge(1), Le(1024)] | None,
        Option(
            "Number of CPU threads; by default one for small models, all cores for large ones.",
            MACHINE,
        ),
    ] = None
    # Height and width, or one number for both, in place of the trained size.
    image_size: Annotated[tuple[int, int], BeforeValidator(_two_sides)] | None = None
