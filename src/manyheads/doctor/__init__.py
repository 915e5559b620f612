"""What is wrong with a run, with evidence and remedy."""
