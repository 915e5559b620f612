"""Predictors: a stored model, called with raw text or images."""
