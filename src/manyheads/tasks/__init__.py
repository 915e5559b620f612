"""Tasks: each binds data, model, loss and metric of one thing to learn."""
