"""Translation: recipe, pipeline, task, predictor, measures, looks."""
