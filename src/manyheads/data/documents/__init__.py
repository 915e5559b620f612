"""Documents: sentence splitting, placeholders, markup transfer and glossaries."""
