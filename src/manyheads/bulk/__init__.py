"""Many lines, translated by several processes or hosts."""
