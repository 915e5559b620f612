"""Numbers that no recipe can mean: they are refused before anything is built with them."""

import math
from collections.abc import Mapping
from typing import Any

from manyheads.errors import RecipeError

MOST = 2**31 - 1  # sizes in 32 bits, as tokenizers and images have them
MOST_SEED = 2**63 - 1
MOST_LAYERS = 1000  # DeepNet, Wang et al. 2022; more would take longer to build than to give up
DEEPEST = 4  # levels of tables and lists
SIGNED = ("score_bias",)  # keys that may be negative
LONGEST = 200  # characters of a value in a message


def check_range(key: str, value: object, *, whole: bool) -> None:
    """Refuse impossible values: sizes below 1, shares outside of 0..1, thousands of layers."""
    if isinstance(value, list | tuple):
        for each in value:  # 0 only where something may be absent
            check_range(key, each, whole=key != "paddings")
    if not isinstance(value, int | float):
        return
    share = key.endswith("dropout")
    most = MOST_LAYERS if key.endswith(("layers", "depths", "convolutions")) else math.inf
    least = -MOST if key in SIGNED else int(whole)
    if not least <= value <= (most if whole else MOST) or (share and value >= 1):  # nan never is
        limit = f"at least {least}{' and below 1' if share else ''}"
        limit += f" and at most {most}" if value > most else ""
        raise RecipeError(f"model.{key} is {value!r}: it must be {limit}.")


def check_numbers(value: Any, key: str = "") -> None:
    """Refuse numbers that no key can have, at any depth."""
    if key.count(".") > DEEPEST:
        raise RecipeError(f"{key} is nested too deeply: tables have no more than two levels.")
    if isinstance(value, Mapping | list):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, part in parts:
            check_numbers(part, f"{key}.{name}" if key else str(name))
    most = MOST_SEED if key == "seed" else MOST
    if (isinstance(value, int) and abs(value) > most) or value in (math.inf, -math.inf):
        raise RecipeError(
            f"{key} is {short(value)}: numbers are finite, whole ones at most {most:,}."
        )


def short(value: object) -> str:
    """Write a value, its end left out if it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # thousands of digits or of levels
        return f"a very long {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
