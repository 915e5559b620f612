"""The one place that knows everything: recipe -> run folder -> predictor -> look."""
