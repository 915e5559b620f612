"""V10, E13: the inductive bias of convolutions, and its value in training images."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from manyheads.labs.bench import Bench, Measured
from manyheads.labs.catalogue import read_sizes
from manyheads.labs.cifar_sample import (
    accuracy,
    classifying,
    predicted,
    samples,
    small_resnet,
    small_vit,
    tensors,
    training,
)
from manyheads.labs.findings import Findings, curves, listing, mean, more, over, table, values
from manyheads.labs.lab_training import fresh, learn, parameters
from manyheads.lens.panels import Curve, Lines, Table
from manyheads.models.mlp import MlpConfig
from manyheads.models.model_config import ModelConfig
from manyheads.streams import generator

TILE = 8  # pixels: the side of shuffled and covered tiles
STEP = 4  # pixels: one patch of the ViT, and one place of the CNN's last map


class Size(NamedTuple):
    """The sizes of training and measurement."""

    steps: int
    images: tuple[int, ...]  # numbers of training images
    widths: tuple[float, ...]  # times the usual width, at the middle number of images
    valid: int
    hold_out: int = 5000
    batch_size: int = 64
    scale: float = 1.0
    shifts: tuple[int, ...] = (0, 1, 2, 4, 8)
    covered: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)


SIZES = read_sizes("bias", Size)
KINDS = ("MLP", "CNN", "ViT")


def config(kind: str, width: float) -> ModelConfig:
    """The config of a small model of a kind, with a width."""
    if kind == "MLP":
        return MlpConfig(hidden_sizes=(round(256 * width),))
    if kind == "CNN":
        return small_resnet(round(16 * width))
    return small_vit(16 * round(4 * width))


def shifted(inputs: Tensor, pixels: int) -> Tensor:
    """Shift images to the right; repeat their left edge."""
    if not pixels:
        return inputs
    return nn.functional.pad(inputs, (pixels, 0, 0, 0), mode="replicate")[..., :-pixels]


def tiles(inputs: Tensor) -> Tensor:
    """Cut images into tiles: (image, tile, channel, row, column)."""
    cut = inputs.unfold(2, TILE, TILE).unfold(3, TILE, TILE)  # image channel y x row column
    return cut.flatten(2, 3).transpose(1, 2)


def untiled(cut: Tensor) -> Tensor:
    """Reassemble images from tiles."""
    side = round(cut.shape[1] ** 0.5)
    rows = cut.unflatten(1, (side, side)).permute(0, 3, 1, 4, 2, 5)  # image channel y row x column
    return rows.flatten(4, 5).flatten(2, 3)


def shuffled(inputs: Tensor, seed: int) -> Tensor:
    """Shuffle the tiles of all images in the same order."""
    cut = tiles(inputs)
    order = torch.from_numpy(generator(seed, "lab bias order").permutation(cut.shape[1]))
    return untiled(cut[:, order.to(cut.device)])


def covered(inputs: Tensor, share: float, seed: int) -> Tensor:
    """Cover a share of the tiles of every image with the mean colour."""
    cut = tiles(inputs).clone()
    random = generator(seed, "lab bias cover").random(cut.shape[:2])
    rank = torch.from_numpy(random.argsort(axis=1).argsort(axis=1)).to(cut.device)
    cut[rank < round(share * cut.shape[1])] = 0.0
    return untiled(cut)


@torch.inference_mode()
def feature_map(model: Any, inputs: Tensor) -> Tensor | None:
    """The last features as (image, dim, row, column); None for an MLP, which has no grid."""
    model.eval()
    features: Tensor = model.features(inputs)
    if features.ndim == 3:  # a ViT's tokens
        grid = model.grid(inputs.shape[2], inputs.shape[3])
        return features[:, model.pool.extra :].transpose(1, 2).unflatten(2, grid)
    return features if features.ndim == 4 else None


def change(a: Tensor, b: Tensor) -> float:
    """Relative distance of b from a."""
    return ((a - b).norm() / a.norm()).item()


def equivariance_error(model: nn.Module, inputs: Tensor) -> dict[str, float] | None:
    """Relative distance of the features of a shifted image from the shifted features.

    One patch to the right; 0 is equivariant. The receptive field of the ResNet's last map is 25 of
    32 pixels, so only the middle column is independent of the borders; elsewhere, zero padding and
    the repeated edge matter (Islam et al. 2020: a CNN learns positions from padding).
    """
    still, moved = feature_map(model, inputs), feature_map(model, shifted(inputs, STEP))
    if still is None or moved is None:
        return None
    a, b = still[..., :-1], moved[..., 1:]  # the same part of the image, where it stays visible
    middle = a.shape[3] // 2
    return {"everywhere": change(a, b), "middle": change(a[..., middle], b[..., middle])}


def set_of_patches(kind: str, width: float, seed: int) -> Measured:
    """Rotate an image cyclically by one patch; return the change of the tokens, and of their mean.

    The models are untrained, so that only the architecture matters.
    """
    if kind == "CNN":
        model = fresh(config("CNN", width), seed)
    else:
        positions = small_vit(16 * max(round(4 * width), 1))
        if kind.endswith("without positions"):
            positions = replace(positions, positions="none")
        model = fresh(positions, seed)
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(8, 3, 32, 32, generator=random).to(next(model.parameters()).device)
    before, after = (feature_map(model, each) for each in (inputs, inputs.roll(STEP, dims=3)))
    assert before is not None
    assert after is not None
    return {
        "one place": change(before, after),
        "mean": change(before.mean(dim=(2, 3)), after.mean(dim=(2, 3))),
    }


def measure(
    kind: str, width: float, images: int, size: Size, root: str | None, seed: int
) -> Measured:
    """Train on a number of images; measure on disturbed images."""
    train, valid = samples(root, size.hold_out, (images, size.valid), seed)
    how = training(size.steps, size.batch_size)
    model = fresh(config(kind, width), seed)
    learned = learn(model, classifying(train, valid, how, seed=seed))
    inputs, labels = tensors(valid)
    usual = predicted(model, inputs)
    return {
        "parameters": parameters(model),
        "loss": learned.loss,
        "accuracy": accuracy(model, inputs, labels),
        "same answer": {
            str(n): 100 * (predicted(model, shifted(inputs, n)) == usual).double().mean().item()
            for n in size.shifts
        },
        "shuffled": accuracy(model, shuffled(inputs, seed), labels),
        "covered": {
            str(share): accuracy(model, covered(inputs, share, seed), labels)
            for share in size.covered
        },
        "equivariance error": equivariance_error(model, inputs[:100]),
    }


def conclude(
    by_images: dict[str, dict[int, list[Measured]]], places: dict[str, list[Measured]], size: Size
) -> str:
    """Conclude which model wins with few and many images, and what pooling does."""
    few, many = min(size.images), max(size.images)
    parts = []
    for images in (few, many):
        found = {kind: each[images] for kind, each in by_images.items()}
        word = more(values(found["CNN"], "accuracy"), values(found["ViT"], "accuracy"))
        parts.append(
            f"with {images:,} pictures the CNN is right {word} often than the ViT "
            f"({mean(found['CNN'], 'accuracy')}% against {mean(found['ViT'], 'accuracy')}%) and "
            f"{more(values(found['CNN'], 'accuracy'), values(found['MLP'], 'accuracy'))} often "
            f"than the MLP ({mean(found['MLP'], 'accuracy')}%)"
        )

    def error(kind: str, where: str) -> str:
        return mean(by_images[kind][many], "equivariance error", where)

    free = places["ViT without positions"]
    invariant = over(free, "mean").mean < 1e-4 < over(free, "one place").mean
    pooling = "leaves the mean as it is" if invariant else "changes the mean too"
    therefore = ": what is invariant is the pooling, not the softmax" if invariant else ""
    return (
        f"After {size.steps} updates, {' and '.join(parts)}; a shift by one patch moves the CNN's "
        f"features along with an error of {error('CNN', 'middle')} in the middle and of "
        f"{error('CNN', 'everywhere')} with the borders, whose padding tells places, the ViT's of "
        f"{error('ViT', 'middle')} and {error('ViT', 'everywhere')}; and turning a "
        f"picture round by a patch changes every token of an untrained ViT without positions (by "
        f"{mean(free, 'one place')} of its length) but {pooling} ({mean(free, 'mean')}){therefore}."
    )


def run(bench: Bench) -> Findings:
    """Train each kind on each number of images; then other widths; then measure untrained ones."""
    size = bench.choose(SIZES)
    by_images = {
        kind: {
            images: bench.each_seed(
                f"{kind}, {images} pictures",
                partial(measure, kind, size.scale, images, size, bench.root),
            )
            for images in size.images
        }
        for kind in KINDS
    }
    middle = size.images[len(size.images) // 2]
    by_width = {
        kind: {
            width: bench.each_seed(
                f"{kind}, {width:g} times as wide",
                partial(measure, kind, width * size.scale, middle, size, bench.root),
            )
            for width in size.widths
        }
        | {1.0: by_images[kind][middle]}
        for kind in ("CNN", "ViT")
    }
    places = {
        name: bench.each_seed(f"untrained: {name}", partial(set_of_patches, name, size.scale))
        for name in ("CNN", "ViT", "ViT without positions")
    }
    many = max(size.images)

    def disturbed(group: str, keys: tuple[float, ...]) -> list[Curve]:
        return [
            Curve.of(kind, keys, [over(each[many], group, str(key)) for key in keys])
            for kind, each in by_images.items()
        ]

    return Findings(
        conclude(by_images, places, size),
        [
            table(
                "Right answers, %, by number of pictures learned from",
                "model",
                by_images,
                "accuracy",
            ),
            Table(
                f"Right answers, %, by size of the model, {middle:,} pictures",
                ["model", "width", "parameters", "right, %"],
                [
                    [kind, f"x {width:g}", f[0]["parameters"], over(f, "accuracy")]
                    for kind, each in by_width.items()
                    for width, f in sorted(each.items())
                ],
            ),
            Table(
                f"Disturbed pictures, models that learned from {many:,}",
                ["model", "tiles shuffled: right, %"]
                + [f"shifted {n}: same answer, %" for n in size.shifts if n]
                + ["equivariance error, middle", "everywhere"],
                [
                    [
                        kind,
                        over(each[many], "shuffled"),
                        *(over(each[many], "same answer", str(n)) for n in size.shifts if n),
                        *(
                            None
                            if each[many][0]["equivariance error"] is None
                            else over(each[many], "equivariance error", where)
                            for where in ("middle", "everywhere")
                        ),
                    ]
                    for kind, each in by_images.items()
                ],
            ),
            listing(
                "Untrained, the picture turned round by one patch: relative change",
                "model",
                places,
                {"of the vector at a place": "one place", "of the mean over places": "mean"},
            ),
        ],
        [
            Lines(
                "Number of pictures",
                "pictures learned from",
                "right, %",
                curves(by_images, "accuracy"),
                log_x=True,
            ),
            Lines(
                "Size of the model",
                "parameters",
                "right, %",
                [
                    Curve.of(
                        kind,
                        [float(f[0]["parameters"]) for _, f in sorted(each.items())],
                        [over(f, "accuracy") for _, f in sorted(each.items())],
                    )
                    for kind, each in by_width.items()
                ],
                log_x=True,
            ),
            Lines(
                "Shifted pictures",
                "pixels to the right",
                "same answer, %",
                disturbed("same answer", size.shifts),
            ),
            Lines(
                "Covered pictures",
                "share of tiles covered",
                "right, %",
                disturbed("covered", size.covered),
            ),
        ],
    )
