"""Model folders, recipes, cards, and the registry of tasks."""
