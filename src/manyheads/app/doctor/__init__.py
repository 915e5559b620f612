"""What is wrong with a run: from its metrics, its weights, and a few batches of its data."""
