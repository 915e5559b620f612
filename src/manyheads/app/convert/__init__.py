"""Convert models of other libraries."""
