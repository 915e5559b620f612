"""Images of requests: the server reads their sizes, and a worker decodes them one after another.

Decoded, an image of a few kilobytes may take a hundred megabytes, and decoders are the most complex
code that a client reaches.
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from io import BytesIO

from PIL import Image

from manyheads.data.images.image_file import PILLOW
from manyheads.data.images.image_file import load as load_image
from manyheads.errors import ManyheadsError, UnreadableError

LARGE = 2_000_000  # pixels of images that are decoded while no other large ones are in memory
PIXELS = 4096  # that count as a token
_alone = threading.Lock()


@dataclass(frozen=True)
class EncodedImage:
    """An image as a client sent it."""

    name: str  # that answers call it
    content: bytes = field(repr=False)
    pixels: int

    @classmethod
    def read(cls, name: str, content: bytes, allowed: int) -> "EncodedImage":
        """Read the size of an image of an allowed format, or raise UnreadableError."""
        try:
            with Image.open(BytesIO(content), formats=PILLOW) as image:
                return cls(name, content, image.width * image.height)
        except Image.DecompressionBombError:
            reason = f"the images of a request may have {allowed:,} pixels together"
        except Exception:  # decoders raise anything for damaged files
            reason = "it is not an image, or damaged"
        raise UnreadableError(name, reason)

    def decode(self) -> Image.Image:
        """Decode it, or raise UnreadableError."""
        try:
            image = load_image(lambda: Image.open(BytesIO(self.content), formats=PILLOW))
        except ManyheadsError:
            raise
        except Exception as error:  # decoders raise anything for damaged files
            reason = str(error) if type(error) is ValueError else "it is not an image, or damaged"
            raise UnreadableError(self.name, reason) from None
        assert isinstance(image, Image.Image)
        image.filename = self.name  # type: ignore[attr-defined] # what answers call it
        return image


def cost_of(images: Sequence[EncodedImage]) -> int:
    """Estimate what decoding images costs, in tokens, besides the work of a model."""
    return sum(image.pixels for image in images) // PIXELS


def room_for(images: Sequence[EncodedImage]) -> AbstractContextManager[object]:
    """Wait, where images are large, until no others are in the memory of this process."""
    return _alone if sum(image.pixels for image in images) > LARGE else nullcontext()
