"""An index of images, and search in it."""
