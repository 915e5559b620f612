"""Look inside a model."""
