"""Models of other libraries: their files in, and ours out."""
