"""Public names for adding to the package from a file of one's own: docs/extending.md.

Apart from `manyheads` itself, whose names are for using models: who loads a model needs none of
these, and who adds a task needs most of them. Parts of models are in `manyheads.nn`, what the
training loop asks of a task is in `manyheads.train`.
"""

from manyheads.lazy import lazy

HOMES = {
    "asks.caption_request": "Caption CaptionAnswer CaptionRequest CaptionToken",
    "asks.classify_request": "ClassifyAnswer ClassifyRequest ClassProbability",
    "asks.evaluate_request": "EvaluateRequest",
    "asks.export_request": "ParityRequest",
    "asks.fill_request": "FillAnswer FillRequest Proposal",
    "asks.generate_request": "Continuation GenerateAnswer GenerateRequest",
    "asks.load_options": "LoadOptions",
    "asks.look_request": "LookRequest",
    "asks.request": "Answer BatchRequest Request TextRequest",
    "asks.search_options": "SearchRequest",
    "asks.tag_request": "TagAnswer TagRequest",
    "asks.translate_request": (
        "SourceToken TranslateAnswer TranslatedText TranslatedToken TranslateRequest"
    ),
    "data.images.image_file": "ImageFormat register_image_format",
    "data.text.formats": "Columns Pair register_text_format",
    "data.text.lines": "Problem Report lines",
    "doctor.run_batches": "Samples",
    "doctor.run_inspection": "RunInspection",
    "engines.engine": "Engine EngineModel TorchEngine register_engine",
    "engines.engine_parity": "Parity",
    "engines.exporter": "Exported Exporter ExportOptions register_exporter",
    "lens.trace.module_shapes": "ShapeLine walk",
    "lens.view.image_view": "Attribution ImageView image_view",
    "lens.view.text_view": "TextOverlay TextView text_overlay text_view",
    "looking.refusals": "refuse_for_images refuse_for_texts",
    "measure.score": "heading scored",
    "measure.text_metrics": "Score",
    "models.components": "register_attention register_positions",
    "models.model_config": "ModelConfig",
    "models.presets": "register_preset",
    "predict.base_predictor": "OutputClasses Predictor",
    "predict.task_pipeline": "Explanation Pipeline Prepared Say Section",
    "project.base_recipe": "DataTable Recipe Table",
    "project.engine_files": "engine_files",
    "project.folder": "ModelFolder read_json write_json",
    "project.paths": "find_data",
    "project.registry": "register_task",
}
__all__, __getattr__, __dir__ = lazy(__name__, HOMES)
