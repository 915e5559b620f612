"""Image augmentation, drawn for each image."""
