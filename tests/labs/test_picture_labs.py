"""The quantities of the picture experiments by hand, and sentences that follow from numbers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.labs.bench import Measured
from manyheads.labs.catalogue import find
from manyheads.labs.cifar_sample import cifar, some
from manyheads.labs.experiments import bias_lab as bias
from manyheads.labs.experiments import distance_lab as distance
from manyheads.labs.experiments import grid_lab as grid
from manyheads.labs.experiments import params_lab as params
from manyheads.labs.experiments import patches_lab as patches
from manyheads.labs.experiments import resolution_lab as resolution
from manyheads.labs.experiments import transfer_lab as transfer
from manyheads.models.presets import build
from manyheads.models.sized_tables import POSITIONS
from manyheads.train.model_tensors import tensors

# --- pictures -----------------------------------------------------------------------------------


def test_pictures_are_held_out_of_the_training_files(root: Path) -> None:
    """As recipes do it: stratified, and never the test file."""
    train, valid = cifar(str(root), 20)
    assert (len(train), len(valid)) == (100, 20)
    assert np.bincount(valid.labels).tolist() == [2] * 10
    assert not set(train.names) & set(valid.names)


def test_more_pictures_have_the_fewer_among_them(root: Path) -> None:
    train, _ = cifar(str(root), 20)
    few, many = some(train, 5, 1), some(train, 50, 1)
    assert set(few.names) < set(many.names)
    assert set(some(train, 5, 2).names) != set(few.names)


# --- params -------------------------------------------------------------------------------------


def test_parameters_of_the_papers() -> None:
    """V8 and E5: exact counts; VGG-16 has 138M; BiT has no attention, ViT one convolution-free."""
    vgg, vit, bit = (params.count(name) for name in ("vgg-16", "vit-b/16", "bit-152x4"))
    assert vgg["parameters"] == 138_357_544
    assert vit["parameters"] == 86_567_656
    assert (bit["attentions"], bit["convolutions"] > 150) == (0, True)
    assert (vit["attentions"], vit["convolutions"]) == (12, 0)
    assert vit["in attention"] == 12 * (4 * 768 * 768 + 4 * 768)
    assert params.count("resnet-152")["parameters"] == 60_192_808


def test_attention_has_fewer_weights_than_a_convolution() -> None:
    """E12: 4 D^2 against 9 D^2."""
    assert params.compare(8) == {"attention": 4 * 64, "convolution": 9 * 64}


def test_the_sentence_of_params_follows_its_numbers() -> None:
    one = {"parameters": 100e6, "attentions": 0, "convolutions": 3}
    models = {
        "vit-b/16": one,
        "vgg-16": one | {"parameters": 90e6},
        "bit-152x4": one | {"attentions": 2},
    }
    text = params.conclude(models, {8: {"attention": 9, "convolution": 4}})
    assert "has more weights" in text
    assert "is larger than VGG-16 (90.0M" in text
    assert "and 2 attentions" in text


# --- patches ------------------------------------------------------------------------------------


def test_tokens_of_a_picture() -> None:
    """V1: 224 in patches of 16 are 196; E6: 256 are 256, not 16; 15 does not divide."""
    assert patches.tokens(224, 16) == 196
    assert patches.tokens(256, 16) == 256
    assert patches.tokens(224, 15) is None


def test_cutting_is_a_convolution() -> None:
    found = patches.cut(4, 8, seed=1)
    assert found["difference"] < 1e-12
    assert (found["tokens"], found["values"]) == (12, 48)


def test_patches_stand_apart() -> None:
    """Four pixels in patches of two: five rows and columns, the middle ones empty."""
    rows = patches.apart(4, 2)
    assert len(rows) == 5
    assert rows[2] == [None] * 5
    assert [row[2] for row in rows] == [None] * 5


def test_the_sentence_of_patches_follows_its_numbers() -> None:
    counted = {(224, 16): 196, (256, 16): 256}
    assert "the same map as" in patches.conclude(counted, {4: {"difference": 1e-16}})
    assert "not the same map" in patches.conclude(counted, {4: {"difference": 0.1}})


# --- grid ---------------------------------------------------------------------------------------


def test_the_sentence_of_grid_follows_its_numbers() -> None:
    def made(right: float, row: float = 0.1) -> list[dict[str, object]]:
        along = {"same row": row, "same column": row, "neither": 0.2}
        return [{"accuracy": right, "shuffled": 20.0, "along": along}]

    kinds = dict.fromkeys(grid.KINDS, 50.0)
    found = {kind: made(value) for kind, value in kinds.items()} | {"none": made(40.0)}
    text = grid.conclude(found)
    assert "which is more" in text
    assert "one row or column are less alike" in text
    found = {kind: made(value, 0.9) for kind, value in kinds.items()}
    text = grid.conclude(found)
    assert "not surely more" in text
    assert "one row or column are more alike" in text


# --- bias ---------------------------------------------------------------------------------------

PICTURES = torch.arange(2 * 3 * 32 * 32.0).view(2, 3, 32, 32)


def test_shift() -> None:
    moved = bias.shifted(PICTURES, 3)
    assert torch.equal(moved[..., 3:], PICTURES[..., :-3])
    assert torch.equal(moved[..., 0], PICTURES[..., 0])
    assert torch.equal(bias.shifted(PICTURES, 0), PICTURES)


def test_tiles() -> None:
    """Shuffled, the same tiles in another order; its own place is known by its pixels."""
    mixed = bias.shuffled(PICTURES, seed=1)
    assert not torch.equal(mixed, PICTURES)
    tiles = PICTURES.view(2, 3, 4, 8, 4, 8).transpose(3, 4)
    for tile in mixed.view(2, 3, 4, 8, 4, 8).transpose(3, 4)[1].flatten(1, 2).unbind(1):
        assert (tiles[1].flatten(1, 2) == tile[:, None]).all(dim=(0, 2, 3)).sum() == 1
    assert torch.equal(mixed.flatten(1).sort().values, PICTURES.flatten(1).sort().values)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_cover(share: float) -> None:
    """So many of the 16 tiles, others in every picture."""
    hidden = bias.covered(PICTURES + 1, share, seed=1)
    tiles = hidden.view(2, 3, 4, 8, 4, 8).transpose(3, 4)
    empty = (tiles == 0).all(dim=(1, 4, 5)).sum(dim=(1, 2))
    assert empty.tolist() == [round(16 * share)] * 2


def test_a_mean_over_a_set_is_invariant() -> None:
    """E13: without positions every token changes, their mean does not; with them both do."""
    free = bias.set_of_patches("ViT without positions", 0.25, seed=1)
    assert free["one place"] > 0.1
    assert free["mean"] < 1e-5
    placed = bias.set_of_patches("ViT", 0.25, seed=1)
    assert placed["mean"] > 1e-3


def test_a_convolution_is_equivariant_and_a_vit_with_positions_is_not() -> None:
    random = torch.Generator().manual_seed(0)
    pictures = torch.randn(4, 3, 32, 32, generator=random)
    torch.manual_seed(0)
    plain = torch.nn.Conv2d(3, 4, 3, padding=1, stride=4)
    convolution = build(bias.config("CNN", 0.25))
    error = bias.equivariance_error(convolution, pictures)
    assert error is not None
    assert error["middle"] < 1e-5
    assert 0.1 < error["everywhere"] < 1  # it sees the borders from nearly everywhere
    torch.testing.assert_close(
        plain(bias.shifted(pictures, 4))[..., 2:], plain(pictures)[..., 1:-1]
    )
    vit = bias.equivariance_error(build(bias.config("ViT", 0.25)), pictures)
    assert vit is not None
    assert vit["middle"] > 0.01
    assert bias.equivariance_error(build(bias.config("MLP", 0.25)), pictures) is None


def test_the_sentence_of_bias_follows_its_numbers() -> None:
    size = find("bias").sizes["smoke"]

    def made(right: float) -> dict[int, list[Measured]]:
        error = {"middle": 0.0, "everywhere": 0.5}
        return {n: [{"accuracy": right, "equivariance error": error}] for n in size.images}

    by_images = {"CNN": made(50), "ViT": made(40), "MLP": made(30)}
    invariant = {"ViT without positions": [{"one place": 1.0, "mean": 0.0}]}
    text = bias.conclude(by_images, invariant, size)
    assert "the CNN is right more often than the ViT (50% against 40%) and more often" in text
    assert "than the MLP (30%)" in text
    assert "the CNN's features along with an error of 0 in the middle and of 0.5 with" in text
    assert text.endswith("what is invariant is the pooling, not the softmax.")
    by_images["CNN"] = made(10)
    text = bias.conclude(
        by_images, {"ViT without positions": [{"one place": 1.0, "mean": 1.0}]}, size
    )
    assert "the CNN is right less often" in text
    assert "invariant is" not in text


# --- distance -----------------------------------------------------------------------------------


def test_receptive_fields_are_counted_as_the_formula_says() -> None:
    """E4: 15 layers see 31 pixels, 16 see 33."""
    found = distance.fields((1, 2, 15, 16))
    assert {n: each["counted"] for n, each in found.items()} == {"1": 3, "2": 5, "15": 31, "16": 33}
    assert all(each["counted"] == each["formula"] for each in found.values())


def test_likeness_of_different_layers() -> None:
    assert distance.uniform([[1.0, 0.2], [0.4, 1.0]]) == pytest.approx(0.3)
    assert distance.mean_of([[[1.0, 0.0]], [[0.0, 1.0]]]) == [[0.5, 0.5]]


# --- resolution ---------------------------------------------------------------------------------


def test_growth_by_hand() -> None:
    """Twice the side is four times the pixels: a cost 16 times as large grows with their square."""
    assert resolution.growth([32, 64, 128], [9.0, 1.0, 16.0]) == pytest.approx(2)
    assert resolution.growth([64, 128], [1.0, 4.0]) == pytest.approx(1)


def test_when_an_accuracy_was_reached() -> None:
    found = {"seconds": [1.0, 2.0, 3.0], "right": [10.0, 30.0, 20.0]}
    assert resolution.reached(found, 30.0) == 2.0
    assert resolution.reached(found, 5.0) == 1.0


def test_the_sentence_of_resolution_follows_its_numbers() -> None:
    names = (resolution.SOFTMAX, resolution.CNN)
    costs = {
        32: {name: {"forward": 1.0} for name in names},
        64: {name: {"forward": 16.0} for name in names},
    }
    slow, fast = ({"seconds": [s], "right": [50.0]} for s in (9.0, 3.0))
    text = resolution.conclude(costs, {resolution.SOFTMAX: [slow], resolution.CNN: [fast]})
    assert "2 (ViT)" in text
    assert "65,536 scores" in text
    assert "later than the ResNet (9 s against 3 s" in text
    text = resolution.conclude(costs, {resolution.SOFTMAX: [fast], resolution.CNN: [slow]})
    assert "sooner than the ResNet" in text


# --- transfer -----------------------------------------------------------------------------------


def test_classes_are_numbered_from_zero(root: Path) -> None:
    _, valid = cifar(str(root), 20)
    part = transfer.classes(valid, 6, 10)
    assert (len(part), part.classes) == (8, valid.classes[6:10])
    assert sorted(set(part.labels.tolist())) == [0, 1, 2, 3]


def test_what_an_arm_takes_over() -> None:
    """Everything but the head; positions interpolated, kept, or its own."""
    size = find("transfer").sizes["smoke"]
    known = tensors(build(transfer.config(transfer.SMALL, 6, size)))
    own = tensors(build(transfer.config(transfer.LARGE, 4, size)))
    tuned = transfer.fitted(known, transfer.TUNED, own, size)
    assert set(tuned) == {name for name in own if not name.startswith("head")}
    assert tuned[POSITIONS].shape == own[POSITIONS].shape == (64, 8)
    assert not torch.equal(tuned[POSITIONS], own[POSITIONS])
    anew = transfer.fitted(known, transfer.FRESH, own, size)
    assert torch.equal(anew[POSITIONS], own[POSITIONS])
    same = transfer.fitted(known, transfer.SAME, own, size)
    assert torch.equal(same[POSITIONS], known[POSITIONS])


def test_the_sentence_of_transfer_follows_its_numbers() -> None:
    def made(right: float) -> dict[int, list[dict[str, float]]]:
        return {40: [{"accuracy": right}], 400: [{"accuracy": right}]}

    found = {arm: made(60.0) for arm in transfer.ARMS} | {transfer.SCRATCH: made(50.0)}
    size = find("transfer").sizes["smoke"]
    text = transfer.conclude(found, size)
    assert "with 2 updates of pre-training and 2 of fine-tuning is right more often" in text
    assert "one from scratch with 2 updates (60% against 50%)" in text
    assert "positions are right not surely more often" in text
    assert "right less often than one from scratch" in transfer.conclude(
        found | {transfer.SCRATCH: made(90.0)}, size
    )
