"""Measure a stored model."""
