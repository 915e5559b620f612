"""Looking for damage in data, and repairing copies of them."""
