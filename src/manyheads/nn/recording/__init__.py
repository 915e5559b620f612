"""Recording of a forward pass: attention, features and decode steps, while a recorder is open."""
