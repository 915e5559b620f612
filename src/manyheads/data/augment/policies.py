"""RandAugment and TrivialAugment: which operations an image gets, and how strongly.

A draw is an operation and a level for every image and layer. Levels are in -1 .. 1; the policy's
`Space` converts them to pixels, degrees and factors.
"""

from typing import Literal, NamedTuple

import numpy as np

Size = tuple[int, int]  # height and width
Policy = Literal["none", "rand", "trivial"]

# The fourteen operations of Cubuk et al. 2020, section 3, geometric and tonal.
GEOMETRIC = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
TONAL = (
    *("brightness", "colour", "contrast", "sharpness"),
    *("posterize", "solarize", "autocontrast", "equalize"),
)
KINDS = (*GEOMETRIC, *TONAL, "identity")


class Space(NamedTuple):
    """The strength of each operation at level 1."""

    shear: float  # pixels sideways a pixel
    translate: tuple[float, float]  # pixels to the side, pixels up or down
    rotate: float  # degrees
    enhance: float  # brightness, colour, contrast, sharpness: a factor of 1 +- this
    bits: int  # removed by posterize, of 8


class Draws(NamedTuple):
    """The operations of every example, in the order in which they are applied."""

    kinds: np.ndarray  # (example, layer) index into KINDS
    levels: np.ndarray  # (example, layer), -1 .. 1


def space(policy: Policy, size: Size) -> Space:
    """Return the strengths of a policy for images of (height, width).

    RandAugment translates by a share of the side (150 of 331 pixels); TrivialAugment's wide space
    (Müller & Hutter 2021, table 1) by 32 pixels for any image size, here at most the side.
    """
    height, width = size
    if policy == "trivial":
        translate = (float(min(width, 32)), float(min(height, 32)))
        return Space(shear=0.99, translate=translate, rotate=135, enhance=0.99, bits=6)
    translate = (150 / 331 * width, 150 / 331 * height)
    return Space(shear=0.3, translate=translate, rotate=30, enhance=0.9, bits=4)
