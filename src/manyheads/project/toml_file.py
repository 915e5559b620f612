"""Read a TOML file that anybody may have written."""

import tomllib
from pathlib import Path
from typing import Any

from manyheads.errors import RecipeError
from manyheads.project.ranges import check_numbers


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of TOML.

    Raises:
        RecipeError: it is not UTF-8, not TOML, nested too deeply, or has a number that no recipe
            can have.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        check_numbers(table)
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{path} is not valid TOML: {error}.") from None
    return table
