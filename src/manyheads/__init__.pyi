"""Public names, for type checkers and editors; programs import each when it is used."""

from manyheads.engine_export import export
from manyheads.errors import ManyheadsError
from manyheads.fit.run_training import train
from manyheads.image_search.image_index import ImageIndex, index, search
from manyheads.looking.look_inside import look
from manyheads.measure.stored_model import evaluate
from manyheads.models.presets import build, preset, register_preset
from manyheads.nn.editing.edits import edit
from manyheads.nn.recording.trace import record
from manyheads.picture_translation import read
from manyheads.predict.load import load
from manyheads.predict.task_pipeline import Pipeline
from manyheads.project.registry import register_task
from manyheads.version import __version__

__all__ = ["ImageIndex", "ManyheadsError", "Pipeline", "__version__", "build", "edit", "evaluate"]
__all__ += ["export", "index", "load", "look", "preset", "read", "record", "register_preset"]
__all__ += ["register_task", "search", "train"]
