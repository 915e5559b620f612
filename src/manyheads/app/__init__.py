"""From a recipe to a run folder, a predictor, and a look inside."""
