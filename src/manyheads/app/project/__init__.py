"""Recipes, run folders, paths and the model card."""
