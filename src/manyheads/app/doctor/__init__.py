"""Diagnosis of a run from its metrics, its weights and a few batches of its data."""
