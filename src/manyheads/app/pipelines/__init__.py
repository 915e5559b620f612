"""One file per task: recipe, data, predictor, evaluation, card, samples, what looking shows."""
