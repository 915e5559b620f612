"""Manyheads beside its peers: the same work, the same run, honest ratios (`make bench`)."""

import os

# Before torch is imported. oneDNN keeps the kernels that it has compiled, 1,024 by default, for the
# whole process: contenders in turns would throw each other's out, which none does when alone.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32768")
