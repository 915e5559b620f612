"""Blocks of layers, stacks of blocks, and pooling."""
