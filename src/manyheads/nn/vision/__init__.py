"""From pixels to tokens: patches, convolutions and token merging."""
