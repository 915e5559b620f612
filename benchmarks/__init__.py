"""Manyheads beside its peers: the same work, the same run, honest ratios (`make bench`)."""
