"""The attention core, and the variants that reshape around it."""
