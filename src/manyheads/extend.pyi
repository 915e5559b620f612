"""Public names, for type checkers and editors; programs import each when it is used."""

from manyheads.asks.caption_request import Caption, CaptionAnswer, CaptionRequest, CaptionToken
from manyheads.asks.classify_request import ClassifyAnswer, ClassifyRequest, ClassProbability
from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.fill_request import FillAnswer, FillRequest, Proposal
from manyheads.asks.generate_request import Continuation, GenerateAnswer, GenerateRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.asks.look_request import LookRequest
from manyheads.asks.request import Answer, BatchRequest, Request, TextRequest
from manyheads.asks.search_options import SearchRequest
from manyheads.asks.tag_request import TagAnswer, TagRequest
from manyheads.asks.translate_request import (
    SourceToken,
    TranslateAnswer,
    TranslatedText,
    TranslatedToken,
    TranslateRequest,
)
from manyheads.data.images.image_file import ImageFormat, register_image_format
from manyheads.data.text.formats import Columns, Pair, register_text_format
from manyheads.data.text.lines import Problem, Report, lines
from manyheads.doctor.run_batches import Samples
from manyheads.doctor.run_inspection import RunInspection
from manyheads.engines.engine import Engine, EngineModel, TorchEngine, register_engine
from manyheads.engines.engine_parity import Parity
from manyheads.engines.exporter import Exported, Exporter, ExportOptions, register_exporter
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.lens.view.image_view import Attribution, ImageView, image_view
from manyheads.lens.view.text_view import TextOverlay, TextView, text_overlay, text_view
from manyheads.looking.refusals import refuse_for_images, refuse_for_texts
from manyheads.measure.score import heading, scored
from manyheads.measure.text_metrics import Score
from manyheads.models.components import register_attention, register_positions
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import register_preset
from manyheads.predict.base_predictor import OutputClasses, Predictor
from manyheads.predict.task_pipeline import Explanation, Pipeline, Prepared, Say, Section
from manyheads.project.base_recipe import DataTable, Recipe, Table
from manyheads.project.engine_files import engine_files
from manyheads.project.folder import ModelFolder, read_json, write_json
from manyheads.project.paths import find_data
from manyheads.project.registry import register_task

__all__ = ["Answer", "Attribution", "BatchRequest", "Caption", "CaptionAnswer", "CaptionRequest"]
__all__ += ["CaptionToken", "ClassProbability", "ClassifyAnswer", "ClassifyRequest", "Columns"]
__all__ += ["Continuation", "DataTable", "Engine", "EngineModel", "EvaluateRequest", "Explanation"]
__all__ += ["ExportOptions", "Exported", "Exporter", "FillAnswer", "FillRequest", "GenerateAnswer"]
__all__ += ["GenerateRequest", "ImageFormat", "ImageView", "LoadOptions", "LookRequest"]
__all__ += ["ModelConfig", "ModelFolder", "OutputClasses", "Pair", "Parity", "ParityRequest"]
__all__ += ["Pipeline", "Predictor", "Prepared", "Problem", "Proposal", "Recipe", "Report"]
__all__ += ["Request", "RunInspection", "Samples", "Say", "Score", "SearchRequest", "Section"]
__all__ += ["ShapeLine", "SourceToken", "Table", "TagAnswer", "TagRequest", "TextOverlay"]
__all__ += ["TextRequest", "TextView", "TorchEngine", "TranslateAnswer", "TranslateRequest"]
__all__ += ["TranslatedText", "TranslatedToken", "engine_files", "find_data", "heading"]
__all__ += ["image_view", "lines", "read_json", "refuse_for_images", "refuse_for_texts"]
__all__ += ["register_attention", "register_engine", "register_exporter", "register_image_format"]
__all__ += ["register_positions", "register_preset", "register_task", "register_text_format"]
__all__ += ["scored", "text_overlay", "text_view", "walk", "write_json"]
