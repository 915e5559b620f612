"""From the names in a recipe to data, and checks of data."""
