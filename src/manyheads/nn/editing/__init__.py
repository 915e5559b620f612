"""Edits of a forward pass: what is recorded elsewhere can be replaced here, at the same sites."""
