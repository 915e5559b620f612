"""Classification of images: recipe, pipeline, task, predictor, measures, looks."""
