"""Masked images: recipe, pipeline, task, predictor, measures, looks."""
