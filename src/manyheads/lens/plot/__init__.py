"""Plots as PNG files, and maps in a terminal."""
