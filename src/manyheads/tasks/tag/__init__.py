"""Spacing of Korean texts: recipe, pipeline, task, predictor, measures, looks."""
