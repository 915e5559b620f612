"""An index of images, on disk: vectors of a model of images and texts, searched by either."""
