"""Stored models that answer: the base of predictors, loading, the interface of a task."""
