"""RandAugment and TrivialAugment: which operations an image gets, and how strongly.

A draw is an operation and a level for every image and layer. Levels are in -1 .. 1; the policy's
`Space` converts them to pixels, degrees and factors.
"""

from typing import Literal, NamedTuple

import numpy as np

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


def space(policy: Policy, size: tuple[int, int]) -> Space:
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


def draw(
    policy: Policy,
    random: np.random.Generator,
    examples: int,
    *,
    layers: int,
    magnitude: float,
    std: float,
) -> Draws:
    """Draw the operations of a policy, in random directions; none for "none".

    "rand": `layers` operations per example, with similar magnitudes. "trivial": one per example,
    at one of 31 strengths.
    """
    shape = (examples, {"rand": layers, "trivial": 1, "none": 0}[policy])
    kinds = random.integers(len(KINDS), size=shape)
    if policy == "rand":
        strength = np.clip(magnitude + std * random.standard_normal(shape), 0, 1)
    else:
        strength = random.integers(31, size=shape) / 30
    return Draws(kinds, strength * random.choice([-1.0, 1.0], size=shape))
