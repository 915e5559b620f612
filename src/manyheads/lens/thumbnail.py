"""Shrink a large image to what is drawn of it."""

import numpy as np
import torch
from torch import Tensor

LONGEST = 1024  # maximum side in pixels


def thumbnail(pixels: Tensor) -> Tensor:
    """Return an image (height, width) or (height, width, 3) of at most LONGEST pixels a side."""
    if max(pixels.shape[:2]) <= LONGEST:
        return pixels
    from PIL import Image

    image = Image.fromarray(pixels.cpu().numpy())
    image.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(image))
