"""Language models: recipe, pipeline, task, predictor, measures, looks."""
