"""Images as predictors take them: paths, Pillow images or arrays."""

from pathlib import Path

from manyheads.data.images.image_file import ImageContent, open_image
from manyheads.errors import UsageError

ImageInput = str | Path | ImageContent


def opened(image: ImageInput) -> ImageContent:
    """Open the file that a path names; return an image or an array as it is.

    Raises:
        UsageError: something else.
        NotFoundError: no such file.
        UnreadableError: the file is not an image, or damaged.
    """
    if isinstance(image, str | Path):
        return open_image(Path(image))
    if not isinstance(image, ImageContent):
        raise UsageError(
            f"The image is {image!r:.80}: give the path of a file, a Pillow image, or an array "
            "(height, width, channel)."
        )
    return image


def named(image: ImageInput) -> str:
    """Name an image for messages and pages: its path, if it is known."""
    path = image if isinstance(image, str | Path) else getattr(image, "filename", "")
    return str(path) or "The image"
