"""The training loop and its parts. It knows a Task protocol, but no model, data set or metric."""
