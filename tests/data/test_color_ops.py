"""Operations on colours: Pillow's own, an image at a time, is the reference."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from manyheads.data.augment import color_ops
from manyheads.data.augment.policies import KINDS, Draws, space

SPACE = space("rand", (6, 6))


def images(count: int = 6, seed: int = 0) -> list[Image.Image]:
    """Colour images of 21 x 30; the values of some lie in a part of the range only."""
    random = np.random.default_rng(seed)
    made = random.integers(0, 256, (count, 21, 30, 3))
    made[1::3] = made[1::3] // 4 + 90
    made[2::3, :, :9] = 40
    return [Image.fromarray(each.astype(np.uint8)) for each in made]


def batch(made: list[Image.Image]) -> Tensor:
    arrays = [np.asarray(each).transpose(2, 0, 1) for each in made]
    return torch.from_numpy(np.stack(arrays)).float()


def changed(name: str, levels: list[float], made: list[Image.Image]) -> Tensor:
    draws = Draws(
        np.full((len(made), 1), KINDS.index(name)), np.array(levels, dtype=float)[:, None]
    )
    return color_ops.apply_tonal(batch(made), draws, SPACE)


LEVELS = [-1.0, -0.5, 0.1, 0.4, 0.9, 1.0]
PILLOW: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "brightness": lambda p, level: ImageEnhance.Brightness(p).enhance(1 + 0.9 * level),
    "colour": lambda p, level: ImageEnhance.Color(p).enhance(1 + 0.9 * level),
    "contrast": lambda p, level: ImageEnhance.Contrast(p).enhance(1 + 0.9 * level),
    "sharpness": lambda p, level: ImageEnhance.Sharpness(p).enhance(1 + 0.9 * level),
    "posterize": lambda p, level: ImageOps.posterize(p, 8 - round(4 * abs(level))),
    "solarize": lambda p, level: ImageOps.solarize(p, math.ceil(256 * (1 - abs(level)))),
    "autocontrast": lambda p, _: ImageOps.autocontrast(p),
    "equalize": lambda p, _: ImageOps.equalize(p),
}


@pytest.mark.parametrize("name", PILLOW)
def test_as_pillow_does(name: str) -> None:
    """Each image at its own level; Pillow rounds after each step, so by one or two values."""
    made = images()
    expected = batch([PILLOW[name](p, level) for p, level in zip(made, LEVELS, strict=True)])
    found = changed(name, LEVELS, made)
    exact = name in ("posterize", "solarize", "equalize")
    assert (found - expected).abs().max() <= (0 if exact else 2.01)
    assert (found - batch(made)).abs().max() > 10  # it did something


def test_every_operation_is_tested() -> None:
    """Against Pillow, above."""
    assert set(PILLOW) == set(KINDS[KINDS.index("brightness") : -1])


@pytest.mark.parametrize("name", PILLOW)
def test_flat_images_and_other_channels(name: str) -> None:
    """One value everywhere, one channel or five, one pixel: numbers within the range."""
    for shape in ((2, 1, 4, 4), (2, 5, 3, 3), (2, 3, 1, 1)):
        pixels = torch.full(shape, 77.0)
        draws = Draws(np.full((2, 1), KINDS.index(name)), np.array([[-1.0], [0.5]]))
        found = color_ops.apply_tonal(pixels, draws, SPACE)
        assert found.isfinite().all()
        assert 0 <= found.min() <= found.max() <= 255


def test_layers_follow_each_other_and_identity_does_nothing() -> None:
    """Inverted twice is as before; an image without an operation stays bit for bit."""
    made = images(2)
    kinds = np.array([[KINDS.index("solarize")] * 2, [KINDS.index("identity")] * 2])
    draws = Draws(kinds, np.ones((2, 2)))  # threshold 0: everything is inverted
    assert torch.equal(color_ops.apply_tonal(batch(made), draws, SPACE), batch(made))
