"""Models: one file each = frozen Config + Module + the paper it follows."""
