"""How long a text may be for a model."""

import sys
from typing import Any


def reach(config: Any) -> int:
    """Say how many tokens a model of text can number: as many as it learned, or any number."""
    learned = getattr(config, "positions", None) == "learned"
    return int(config.max_length) if learned else sys.maxsize
