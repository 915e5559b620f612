"""Data: from files to batches of tensors. Whatever is sampled is seeded by epoch and example."""
