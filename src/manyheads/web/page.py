"""The page: static files beside this module."""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
