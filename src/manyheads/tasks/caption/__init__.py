"""Texts for images: recipe, pipeline, task, predictor, measures, looks."""
