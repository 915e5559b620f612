"""The training loop and its parts. It knows a Task protocol, and no model, no data set, no metric."""
