"""Translate documents."""
