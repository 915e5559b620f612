"""Manyheads: one attention core, many heads - Transformers for text, for images, for both.

>>> import manyheads
>>> translate = manyheads.load("date-en-ko")
>>> translate("Friday, 20 November 2026")
'2026년 11월 20일 금요일'

Names for using models are here; `manyheads.extend` has those for adding a task of one's own.
"""

from manyheads import interruption as interruption  # noqa: I001 - before what takes time

from importlib import import_module
from typing import TYPE_CHECKING

from manyheads.lazy import lazy
from manyheads.version import __version__

if TYPE_CHECKING:
    from manyheads.engine_export import export
    from manyheads.errors import ManyheadsError
    from manyheads.fit.run_training import train
    from manyheads.image_search.image_index import ImageIndex, index, search
    from manyheads.looking.look_inside import look
    from manyheads.measure.stored_model import evaluate
    from manyheads.models.presets import build, preset, register_preset
    from manyheads.nn.recording.trace import record
    from manyheads.picture_translation import read
    from manyheads.predict.load import load
    from manyheads.predict.task_pipeline import Pipeline
    from manyheads.project.registry import register_task

__all__ = ["ImageIndex", "ManyheadsError", "Pipeline", "__version__", "build", "evaluate", "export"]
__all__ += ["index", "load", "look", "preset", "read", "record", "register_preset", "register_task"]
__all__ += ["search", "train"]

__getattr__ = lazy(__name__, __file__)

# A package that is called like a function: docs/decisions/callable-train.md.
import_module("manyheads.train")
