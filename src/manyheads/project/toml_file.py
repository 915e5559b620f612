"""Read a TOML file that anybody may have written."""

import tomllib
from pathlib import Path
from typing import Any

from manyheads.errors import RecipeError


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of TOML.

    Raises:
        RecipeError: it is not UTF-8, not TOML, or nested too deeply.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{path} is not valid TOML: {error}.") from None
