"""Parts of a look that several tasks have."""

from dataclasses import replace

import numpy as np
from PIL import Image

from manyheads.data.images.image_file import ImageContent
from manyheads.data.images.image_set import Preprocessing
from manyheads.lens.view.text_view import TextView
from manyheads.looking.text_overlays import Reading, explain_reading


def explained(view: TextView, reading: Reading, *, integrated: bool | None) -> TextView:
    """Add overlays that explain the output tokens to a view."""
    overlays, notes = explain_reading(reading, integrated=integrated)
    return replace(view, overlays=overlays, notes=[*view.notes, *notes])


def shown_pixels(preprocessing: Preprocessing, image: ImageContent) -> np.ndarray:
    """Turn an image as the model saw it, uncropped, in colours that a screen has."""
    if isinstance(image, np.ndarray):  # of more bands than eyes have: their mean
        values = image.reshape(*image.shape[:2], -1).mean(axis=2, dtype=np.float32)
        return np.rint(255 * values / max(values.max(), 1e-9)).clip(0, 255).astype(np.uint8)
    shown = preprocessing.upright(image)
    if shown.mode == "RGBA":
        shown = Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown)
    if shown.mode not in ("L", "RGB"):
        shown = shown.convert("RGB")
    return np.array(shown, dtype=np.uint8)
