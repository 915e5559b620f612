"""How long a text may be for a model."""

import sys
from typing import Any


def limited(config: Any) -> bool:
    """Say whether a model of text has learned its positions, so that it has so many and no more."""
    return getattr(config, "positions", None) == "learned"


def reach(config: Any) -> int:
    """Say how many tokens a model of text can number: as many as it learned, or any number."""
    return int(config.max_length) if limited(config) else sys.maxsize
