"""What looking inside shows, as far as tasks share it."""
