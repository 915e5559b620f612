"""Public names for adding to the package from a file of one's own: docs/extending.md.

Apart from `manyheads` itself, whose names are for using models: who loads a model needs none of
these, and who adds a task needs most of them. Parts of models are in `manyheads.nn`, what the
training loop asks of a task is in `manyheads.train`.
"""

from typing import TYPE_CHECKING

from manyheads.lazy import lazy

if TYPE_CHECKING:
    from manyheads.app.engines.engine import ENGINES, Engine, TorchEngine
    from manyheads.app.evaluate.score import heading, scored
    from manyheads.app.pipeline import Explanation, Pipeline, Prepared, Say, Section
    from manyheads.app.predictors.predictor import LoadOptions, Predictor
    from manyheads.app.project.folder import ModelFolder, read_json, write_json
    from manyheads.app.project.paths import find_data
    from manyheads.app.project.recipe import DataTable, Recipe, Table
    from manyheads.app.project.registry import register_task
    from manyheads.app.requests import EvaluateRequest, LookRequest
    from manyheads.data.images.image_file import FORMATS as IMAGE_FORMATS
    from manyheads.data.images.image_file import ImageFormat
    from manyheads.data.text.formats import FORMATS as TEXT_FORMATS
    from manyheads.data.text.formats import Columns, Pair
    from manyheads.data.text.lines import Problem, Report, lines
    from manyheads.models.config import ModelConfig
    from manyheads.models.presets import register_preset
    from manyheads.tasks.metrics import Score

__all__ = ["ENGINES", "IMAGE_FORMATS", "TEXT_FORMATS", "Columns", "DataTable", "Engine"]
__all__ += ["EvaluateRequest", "Explanation", "ImageFormat", "LoadOptions", "LookRequest"]
__all__ += ["ModelConfig", "ModelFolder", "Pair", "Pipeline", "Predictor", "Prepared", "Problem"]
__all__ += ["Recipe", "Report", "Say", "Score", "Section", "Table", "TorchEngine", "find_data"]
__all__ += ["heading", "lines", "read_json", "register_preset", "register_task", "scored"]
__all__ += ["write_json"]

__getattr__ = lazy(__name__, __file__)
