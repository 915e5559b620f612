"""Long jobs on all cores of a machine: cut into blocks, worked on by processes, resumable."""
