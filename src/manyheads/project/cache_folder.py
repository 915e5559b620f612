"""The folder for what can be fetched again: copies of remote data, packages."""

import os
from pathlib import Path

CACHE = "MANYHEADS_CACHE"


def cache_folder() -> Path:
    """Return $MANYHEADS_CACHE, else $XDG_CACHE_HOME/manyheads, else ~/.cache/manyheads."""
    if given := os.environ.get(CACHE):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "manyheads"
