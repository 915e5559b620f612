"""mixup, CutMix and erasing: what an image and its classes become."""

import numpy as np
import pytest
import torch

from manyheads.data.augment.mixing import Erasing, Mixing
from manyheads.streams import generator

ONE_HOT = torch.eye(4)


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def stream(kind: str) -> np.random.Generator:
    return generator(0, kind)


def plain(count: int = 4) -> torch.Tensor:
    """Images of one value each: 10, 20, 30, ..."""
    return (10.0 * torch.arange(1, count + 1)).view(-1, 1, 1, 1).expand(-1, 2, 8, 10)


def test_mixup_by_hand() -> None:
    """A quarter of the next image; the last one's next is the first."""
    mixing = Mixing(stream, 4, mixup=0.8, cutmix=0, mix=1)
    mixing.own[:] = [1.0, 0.75, 0.5, 0.25]
    pixels, targets = mixing(plain(), ONE_HOT, np.arange(4))
    assert pixels[:, 0, 0, 0].tolist() == pytest.approx([10, 22.5, 35, 17.5])
    assert targets[3].tolist() == [0.75, 0, 0, 0.25]
    assert targets[1].tolist() == [0, 0.75, 0.25, 0]


def test_cutmix_by_hand() -> None:
    """A box of the next image, and classes by the pixels that it really covers."""
    mixing = Mixing(stream, 4, mixup=0, cutmix=1, mix=1)
    mixing.own[:] = 1 - 0.25
    mixing.places[:] = [0.0, 0.0]
    pixels, targets = mixing(plain(), ONE_HOT, np.arange(4))
    assert (pixels[0, :, :4, :5] == 20).all()
    assert (pixels[0, :, 4:] == 10).all()
    assert (pixels[0, :, :, 5:] == 10).all()
    assert targets[0].tolist() == pytest.approx([0.75, 0.25, 0, 0])
    mixing.own[:] = 1 - 0.3  # 4.4 x 5.5 pixels become 4 x 5 (half to even: 5.48 -> 5)
    _, targets = mixing(plain(), ONE_HOT, np.arange(4))
    assert targets[0].tolist() == pytest.approx([0.75, 0.25, 0, 0])


def test_shares_are_shares_and_pixels_say_the_same() -> None:
    """The mean of a plain image is its classes' mean: for mixup and CutMix alike."""
    mixing = Mixing(stream, 64, mixup=0.8, cutmix=1.0, mix=0.8)
    pixels, targets = mixing(plain(64), torch.eye(64), np.arange(64))
    assert torch.allclose(targets.sum(1), torch.ones(64))
    values = targets @ (10.0 * torch.arange(1, 65))
    torch.testing.assert_close(pixels.mean((1, 2, 3)), values)
    whole = (targets.amax(1) == 1).float().mean()
    assert 0.1 < whole < 0.4  # one in five is not mixed
    assert 20 < mixing.cut.sum() < 44


@pytest.mark.parametrize(("mixup", "cutmix", "cut"), [(0.5, 0.0, 0.0), (0.0, 0.5, 1.0)])
def test_one_of_them_alone(mixup: float, cutmix: float, cut: float) -> None:
    """Each alpha of its own; Beta(a, a) has the mean 1/2."""
    mixing = Mixing(stream, 4000, mixup=mixup, cutmix=cutmix, mix=1)
    assert mixing.cut.mean() == cut
    assert mixing.own.mean() == pytest.approx(0.5, abs=0.02)
    assert mixing.own.var() == pytest.approx(1 / 8, abs=0.01)  # 1 / (4 (2 a + 1))


def test_erasing() -> None:
    """A box of noise in some images, each by itself; the others stay as they are."""
    erasing = Erasing(random(), 400, 0.25)
    images = torch.full((400, 3, 20, 30), -1.0)
    found = erasing(images, np.arange(400))
    inside = found >= 0
    assert (inside[:, 0] == inside[:, 1]).all()  # the box is one for all channels
    areas = inside[:, 0].float().mean((1, 2))
    assert 0.2 < (areas > 0).float().mean() < 0.3
    assert areas[areas > 0].min() > 0.01
    assert areas.max() < 0.36
    rows, columns = inside[:, 0].any(2).sum(1), inside[:, 0].any(1).sum(1)
    assert (inside[:, 0].sum((1, 2)) == rows * columns).all()  # a box, not a cloud
    noise = found[inside]
    assert noise.min() >= 0
    assert noise.max() <= 255
    assert 100 < noise.mean() < 155
    order = random(1).permutation(400)
    assert torch.equal(erasing(images, order), found[order])
