"""What runs a model, and what exports it there."""
