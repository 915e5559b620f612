"""Engines: what runs a stored model."""
