"""Measuring models: scores, intervals, what is compared of an engine."""
