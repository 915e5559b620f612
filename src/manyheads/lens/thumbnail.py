"""Shrink a large image to what is drawn of it; write it into a page."""

import base64
import io

import numpy as np
import torch
from torch import Tensor

LONGEST = 1024  # maximum side in pixels
DETAILED = 128  # up to this side in pixels an image is stored losslessly


def thumbnail(pixels: Tensor) -> Tensor:
    """Return an image (height, width) or (height, width, 3) of at most LONGEST pixels a side."""
    if max(pixels.shape[:2]) <= LONGEST:
        return pixels
    from PIL import Image

    image = Image.fromarray(pixels.cpu().numpy())
    image.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(image))


def data_url(pixels: Tensor) -> str:
    """Encode an image (height, width) or (height, width, 1 or 3), 0..255, as a data URL."""
    from PIL import Image

    grey = pixels.ndim == 3 and pixels.shape[-1] == 1
    image = Image.fromarray(thumbnail(pixels[..., 0] if grey else pixels).cpu().numpy())
    kind = "png" if max(image.size) <= DETAILED else "jpeg"
    content = io.BytesIO()
    image.save(content, kind, quality=88)
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"
