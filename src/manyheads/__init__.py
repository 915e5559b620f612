"""Manyheads: one attention core, many heads - Transformers for text, for images, for both.

>>> import manyheads
>>> translate = manyheads.load("date-en-ko")
>>> translate("Friday, 20 November 2026")
'2026년 11월 20일 금요일'

Names for using models are here; `manyheads.extend` has those for adding a task of one's own.
"""

from manyheads import interruption as interruption  # noqa: I001 - before what takes time

from importlib import import_module

from manyheads.lazy import lazy

HOMES = {
    "engine_export": "export",
    "errors": "InputWarning ManyheadsError",
    "fit.run_training": "train",
    "image_search.image_index": "ImageIndex index search",
    "looking.look_inside": "look",
    "measure.stored_model": "evaluate",
    "models.presets": "build preset register_preset",
    "nn.editing.edits": "edit",
    "nn.recording.trace": "record",
    "picture_translation": "read",
    "predict.base_predictor": "Predictor",
    "predict.load": "load",
    "predict.task_pipeline": "Pipeline",
    "project.registry": "register_task",
    "tasks.caption.predictor": "Captioner",
    "tasks.classify.predictor": "Classifier",
    "tasks.embed.predictor": "Embedder",
    "tasks.fill.predictor": "MaskFiller",
    "tasks.generate.predictor": "Generator",
    "tasks.match.predictor": "Matcher",
    "tasks.read.predictor": "Reader",
    "tasks.tag.predictor": "WordSpacer",
    "tasks.translate.predictor": "Translator",
    "version": "__version__",
}
__all__, __getattr__, __dir__ = lazy(__name__, HOMES)

# A package that is called like a function: docs/decisions/callable-train.md.
import_module("manyheads.train")
