"""Single layers: what a block is made of."""
