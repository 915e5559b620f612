"""Manyheads: one attention core, many heads - Transformers for text, for images, for both.

>>> import manyheads
>>> translate = manyheads.load("date-en-ko")
>>> translate("Friday, 20 November 2026")
'2026년 11월 20일 금요일'
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = ["ManyheadsError", "__version__", "build", "load", "look", "preset", "record"]

if TYPE_CHECKING:
    from manyheads.app.look import look
    from manyheads.app.predict import load
    from manyheads.errors import ManyheadsError
    from manyheads.models.build import build
    from manyheads.models.presets import preset
    from manyheads.nn.trace import record

_HOMES = {
    "ManyheadsError": "manyheads.errors",
    "build": "manyheads.models.build",
    "load": "manyheads.app.predict",
    "look": "manyheads.app.look",
    "preset": "manyheads.models.presets",
    "record": "manyheads.nn.trace",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `manyheads --help` needs no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'manyheads' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
