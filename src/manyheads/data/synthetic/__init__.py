"""Data that a seed generates."""
