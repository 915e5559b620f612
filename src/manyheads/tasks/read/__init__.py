"""Reading of printed lines: recipe, pipeline, task, predictor, measures, looks."""
