"""Tensor parts of the house. Imports torch, and nothing of ours but errors."""
