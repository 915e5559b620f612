"""Masked language models: recipe, pipeline, task, predictor, measures, looks."""
