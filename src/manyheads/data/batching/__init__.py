"""Batches and the order of batches in an epoch."""
