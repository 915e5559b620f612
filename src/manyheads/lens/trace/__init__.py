"""Read what a recorder kept."""
