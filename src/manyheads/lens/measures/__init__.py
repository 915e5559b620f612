"""Measures of attention heads, layers and vectors."""
