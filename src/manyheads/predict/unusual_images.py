"""What is unusual about an image, measured on its pixels against a model's training images.

A drawing among photos or a photo among drawings, noise, one colour: a softmax is often sure of
them all the same (Hendrycks and Gimpel 2017), and few numbers of the pixels tell them apart.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from manyheads.nn.shapes import Images
from manyheads.project.domain import ImageDomain

ALIKE = 2  # of 255: neighbours that differ by no more are alike


class ImageMeasures(NamedTuple):
    """Of an image, 0..255; what `ImageDomain` has limits of."""

    alike: float  # percent of neighbouring pixels that are alike in every channel
    change: float  # mean over neighbours of the largest difference in a channel
    median: float  # median of the same
    light: float  # mean of all values
    contrast: float  # their standard deviation
    edge: float  # standard deviation along the edge, mean of the channels
    colour: float  # mean over pixels of the largest minus the smallest channel


NAMES = {
    "alike": "the share of neighbouring pixels that are alike (percent)",
    "change": "the mean difference of neighbouring pixels",
    "median": "the median difference of neighbouring pixels",
    "light": "the mean brightness",
    "contrast": "the contrast",
    "edge": "the contrast along the edge",
    "colour": "the difference of the channels",
}
MOST = dict.fromkeys(NAMES, 255.0) | {"alike": 100.0}


def measure_images(pixels: Images) -> Iterator[ImageMeasures]:
    """Measure images as the model is given them, 0..255.

    Examples:
        >>> (stripes,) = measure_images(torch.tensor([[[[0, 200, 0, 200]] * 4]]))
        >>> stripes.alike, stripes.change, stripes.light  # rows are alike, columns are not
        (50.0, 100.0, 100.0)
    """
    for image in pixels.float():
        across, down = (image.diff(dim=dim).abs().amax(dim=0).flatten() for dim in (2, 1))
        steps = torch.cat([across, down])
        if not len(steps):  # of one pixel
            steps = image.new_zeros(1)
        edge = torch.cat([image[:, 0], image[:, -1], image[:, :, 0], image[:, :, -1]], dim=1)
        yield ImageMeasures(
            alike=100 * float((steps <= ALIKE).float().mean()),
            change=float(steps.mean()),
            median=float(steps.median()),
            light=float(image.mean()),
            contrast=float(image.std(correction=0)),
            edge=float(edge.std(dim=1, correction=0).mean()),
            colour=float((image.amax(dim=0) - image.amin(dim=0)).mean()),
        )


def unlike(
    model: str, pixels: Iterable[Tensor], domain: ImageDomain | None
) -> Iterator[str | None]:
    """Say of each image, (channel, height, width), what is most unusual about it; None if nothing.

    Args:
        model: its name.
        pixels: of the images, 0..255.
        domain: the model's limits; None: nothing is known.
    """
    for image in pixels:
        if domain is None:
            yield None
            continue
        (measured,) = measure_images(image[None])
        beyond = {
            name: max(low - getattr(measured, name), getattr(measured, name) - high)
            / max(high - low, 1.0)
            for name, (low, high) in domain.limits.items()
            if name in NAMES
        }
        most = max(beyond, key=beyond.__getitem__, default="")
        if beyond.get(most, 0.0) <= 0:
            yield None
            continue
        low, high = domain.limits[most]
        yield (
            f"the image is unlike what {model} learned to recognise: {NAMES[most]} is "
            f"{getattr(measured, most):.3g}, in nearly all of its training images it is "
            f"{max(low, 0.0):.3g} to {min(high, MOST[most]):.3g}. Check the answer."
        )
