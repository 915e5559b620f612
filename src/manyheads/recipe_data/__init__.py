"""The [data] tables of recipes, and reading what they name."""
