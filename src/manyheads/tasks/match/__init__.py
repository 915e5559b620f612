"""Images and texts in one space: recipe, pipeline, task, predictor, measures, looks."""
