"""Documents: formats, sentence splitting, placeholders, markup transfer and glossaries."""
