"""Augmentation: each image by itself, and a pure function of (seed, epoch, example)."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from manyheads.data.augment.affine_ops import operation_maps
from manyheads.data.augment.augment import Augmentation, Augmenter
from manyheads.data.augment.policies import KINDS, Draws, space

PICTURE = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]], dtype=torch.uint8)


def augmenter(
    *, shift: int = 0, flip: bool = False, examples: int = 64, seed: int = 1, epoch: int = 0
) -> Augmenter:
    config = Augmentation(shift=shift, flip=flip)
    return Augmenter(config, examples, seed=seed, epoch=epoch)


def some_images(count: int) -> torch.Tensor:
    """Images of two channels that all differ: (image, channel, 3, 3)."""
    values = torch.arange(count * 18, dtype=torch.int32).remainder(251).add(1)
    return values.view(count, 2, 3, 3).to(torch.uint8)


@pytest.mark.parametrize(
    ("draw", "result"),
    [
        ((0, 0), [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        ((1, 0), [[4, 5, 6], [7, 8, 9], [0, 0, 0]]),  # the window moves down a row
        ((-1, 0), [[0, 0, 0], [1, 2, 3], [4, 5, 6]]),
        ((0, 1), [[2, 3, 0], [5, 6, 0], [8, 9, 0]]),  # and to the right a column
        ((-1, -1), [[0, 0, 0], [0, 1, 2], [0, 4, 5]]),
    ],
)
def test_shift_by_hand(draw: tuple[int, int], result: list[list[int]]) -> None:
    """The same as a border of zeros and a crop of the old size."""
    augment = augmenter(shift=1)
    augment.shifts[7] = draw
    assert augment(PICTURE[None, None], np.array([7]))[0, 0].tolist() == result


def test_flip_by_hand() -> None:
    """Left and right change places, top and bottom do not."""
    augment = augmenter(flip=True)
    augment.flips[:2] = [True, False]
    flipped, same = augment(PICTURE.expand(2, 1, 3, 3), np.array([0, 1]))
    assert flipped[0].tolist() == [[3, 2, 1], [6, 5, 4], [9, 8, 7]]
    assert same[0].tolist() == PICTURE.tolist()


def test_nothing_asked_nothing_done() -> None:
    """The default leaves images alone."""
    assert torch.equal(augmenter()(some_images(4), np.arange(4)), some_images(4))


def test_an_image_does_not_depend_on_its_batch() -> None:
    """Alone, in another order, among others: an example gets its own draw."""
    images = some_images(64)
    augment = augmenter(shift=1, flip=True)
    together = augment(images, np.arange(64))
    order = np.random.default_rng(0).permutation(64)
    assert torch.equal(augment(images[order], order), together[order])
    for example in (0, 9, 63):
        alone = augment(images[example : example + 1], np.array([example]))
        assert torch.equal(alone[0], together[example])


def test_each_image_has_its_own_draw() -> None:
    """Not one draw for a batch: all nine shifts and both sides occur, about equally often."""
    augment = augmenter(shift=1, flip=True, examples=9000)
    _, counts = np.unique(augment.shifts, axis=0, return_counts=True)
    assert len(counts) == 9
    assert counts.min() > 850
    assert 0.45 < augment.flips.mean() < 0.55


def test_channels_move_together() -> None:
    """A shift moves colours as one."""
    images = some_images(64)
    images[:, 1] = images[:, 0]
    moved = augmenter(shift=1, flip=True)(images, np.arange(64))
    assert torch.equal(moved[:, 0], moved[:, 1])


def test_the_draw_is_a_pure_function_of_seed_and_epoch() -> None:
    """Resuming needs no state; another epoch or seed sees other images."""
    images, all_of_them = some_images(64), np.arange(64)
    first = augmenter(shift=1, flip=True)(images, all_of_them)
    torch.manual_seed(5)  # a stream of its own: nothing else moves it
    assert torch.equal(augmenter(shift=1, flip=True)(images, all_of_them), first)
    assert not torch.equal(augmenter(shift=1, flip=True, epoch=1)(images, all_of_them), first)
    assert not torch.equal(augmenter(shift=1, flip=True, seed=2)(images, all_of_them), first)


def test_alternating_flips_by_hand() -> None:
    """Jordan 2024, section 3.6: what one epoch shows mirrored, the next one does not."""
    config = Augmentation(flip=True, alternate=True)
    flips = [Augmenter(config, 9000, seed=1, epoch=epoch).flips for epoch in range(3)]
    assert 0.45 < flips[0].mean() < 0.55
    assert (flips[1] == ~flips[0]).all()
    assert (flips[2] == flips[0]).all()
    with pytest.raises(ValueError, match="set flip = true"):
        Augmentation(alternate=True)


def test_flipping_does_not_change_the_shifts() -> None:
    """One more kind of augmentation leaves the others' draws alone."""
    assert (augmenter(shift=1).shifts == augmenter(shift=1, flip=True).shifts).all()


def test_shifting_does_not_change_the_flips() -> None:
    """Each kind of augmentation has a stream of its own."""
    flips = augmenter(flip=True).flips
    for shift in (1, 4):
        assert (augmenter(shift=shift, flip=True).flips == flips).all()


def test_mixing_one_way_less_does_not_change_the_other() -> None:
    """Images that CutMix cuts in any case are cut in the same place, to the same share."""
    both, cutmix, mixup = (
        Augmenter(config, 200, seed=1, epoch=0).mixing
        for config in (
            Augmentation(mixup=0.8, cutmix=1.0),
            Augmentation(cutmix=1.0),
            Augmentation(mixup=0.8),
        )
    )
    assert both is not None
    assert cutmix is not None
    assert mixup is not None
    assert 60 < both.cut.sum() < 140
    assert (both.places == cutmix.places).all()
    assert (both.own == np.where(both.cut, cutmix.own, mixup.own)).all()


def test_mixing_may_end_before_training_does() -> None:
    """The last epochs see whole images; the classes stay shares."""
    config = Augmentation(mixup=0.8, mix_epochs=2)
    pixels, targets = torch.rand(4, 3, 2, 2), torch.eye(4)
    for epoch, same in ((0, False), (1, False), (2, True), (9, True)):
        mixed, wanted = Augmenter(config, 4, seed=1, epoch=epoch).mix(pixels, targets, np.arange(4))
        assert torch.equal(mixed, pixels) == same
        assert torch.equal(wanted, targets) == same


@pytest.mark.parametrize(
    ("policy", "size", "across", "down"),
    [
        ("trivial", (64, 128), 32, 32),  # 32 pixels both ways, as torchvision's TrivialAugmentWide
        ("trivial", (20, 64), 32, 20),  # and no more than there are
        ("rand", (64, 128), 150 / 331 * 128, 150 / 331 * 64),  # a share of the side it goes along
    ],
)
def test_translations_of_images_that_are_not_square(
    policy: Literal["rand", "trivial"], size: tuple[int, int], across: float, down: float
) -> None:
    """The strongest one, to the side and downwards, as pixels of a warped image show it."""
    for kind, pixels in (("translate_x", across), ("translate_y", down)):
        draws = Draws(np.array([[KINDS.index(kind)]]), np.array([[1.0]]))
        (moved,) = operation_maps(draws, space(policy, size))
        expected = (-pixels, 0) if kind == "translate_x" else (0, -pixels)
        assert moved[:2, 2] == pytest.approx(expected)


def test_a_negative_shift_is_refused() -> None:
    """Found when the recipe is read."""
    with pytest.raises(ValidationError):
        TypeAdapter(Augmentation).validate_python({"shift": -1})


# --- Everything together ------------------------------------------------------------------------

FULL = Augmentation(
    shift=1, flip=True, policy="rand", magnitude=0.9, magnitude_std=0.1, erase=0.5, mixup=0.8
)
CROPPED = Augmentation(resized_crop=0.1, oversize=2.0, policy="trivial")


def colours(count: int, side: int = 9) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, side, side), generator=generator).to(torch.uint8)


@pytest.mark.parametrize("config", [FULL, CROPPED])
def test_every_draw_belongs_to_its_example(config: Augmentation) -> None:
    """In another order, alone, and in another epoch."""

    def made(seed: int = 1, epoch: int = 0) -> Augmenter:
        return Augmenter(
            config, 64, seed=seed, epoch=epoch, size=(5, 5) if config.oversize > 1 else None
        )

    images, everything = colours(64), np.arange(64)
    together = made()(images, everything)
    assert together.shape == ((64, 3, 5, 5) if config.oversize > 1 else images.shape)
    assert 0 <= together.min() <= together.max() <= 255
    order = np.random.default_rng(0).permutation(64)
    torch.testing.assert_close(made()(images[order], order), together[order])
    for example in (0, 17, 63):
        alone = made()(images[example : example + 1], np.array([example]))
        torch.testing.assert_close(alone[0], together[example])
    assert torch.equal(made()(images, everything), together)
    assert not torch.equal(made(epoch=1)(images, everything), together)
    assert not torch.equal(made(seed=2)(images, everything), together)


def test_one_more_kind_leaves_the_others_draws_alone() -> None:
    """Streams of their own: switching one on does not reshuffle the rest."""
    full = Augmenter(FULL, 64, seed=1, epoch=3)
    alone = Augmenter(Augmentation(shift=1, flip=True), 64, seed=1, epoch=3)
    assert (full.shifts == alone.shifts).all()
    assert (full.flips == alone.flips).all()
    without = Augmenter(replace(FULL, policy="none"), 64, seed=1, epoch=3)
    assert full.erase is not None
    assert without.erase is not None
    assert (full.erase.areas == without.erase.areas).all()


def test_randaugment_draws_for_each_image() -> None:
    """Not one list of operations for a batch: all fourteen occur in each layer."""
    draws = Augmenter(FULL, 4000, seed=1, epoch=0).draws
    assert draws.kinds.shape == (4000, 2)
    for layer in draws.kinds.T:
        assert np.bincount(layer, minlength=14).min() > 200
    strengths = np.abs(draws.levels)
    assert 0.8 < strengths.mean() < 0.95
    assert strengths.max() <= 1
    assert abs((draws.levels > 0).mean() - 0.5) < 0.03


def test_trivialaugment_draws_one_of_31_strengths() -> None:
    """One operation an image, any strength (Müller & Hutter 2021)."""
    draws = Augmenter(Augmentation(policy="trivial"), 4000, seed=1, epoch=0).draws
    assert draws.kinds.shape == (4000, 1)
    assert len(np.unique(np.abs(draws.levels).round(6))) == 31


@pytest.mark.parametrize(
    "wrong",
    [
        {"shift": 2, "resized_crop": 0.5},
        {"oversize": 1.5},
        {"resized_crop": 0},
        {"policy": "auto"},
        {"magnitude": 9},
        {"erase": 1.5},
        {"mixup": -1},
        {"mix_epochs": -1},
    ],
)
def test_augmentation_that_cannot_be(wrong: dict[str, object]) -> None:
    """Found when the recipe is read."""
    with pytest.raises(ValidationError):
        TypeAdapter(Augmentation).validate_python(wrong)
