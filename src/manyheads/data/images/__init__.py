"""Image sets from folders, tables and archives, and the preprocessing stored with a model."""
