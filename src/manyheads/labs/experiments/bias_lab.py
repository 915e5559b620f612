"""V10, E13: the inductive bias of convolutions, and its value in training images."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import fold, unfold

from manyheads.labs import cifar_sample as sample
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import ByModel, BySize, Trials, mean, more, over
from manyheads.labs.lab_training import fresh, learn, parameters
from manyheads.lens.panels import Interval
from manyheads.models.mlp import MlpConfig
from manyheads.models.model_config import ModelConfig
from manyheads.streams import generator

TILE = 8  # pixels: the side of shuffled and covered tiles
STEP = 4  # pixels: one patch of the ViT, and one place of the CNN's last map
KINDS = ("MLP", "CNN", "ViT")


def config(kind: str, width: float) -> ModelConfig:
    """The config of a small model of a kind, with a width."""
    if kind == "MLP":
        return MlpConfig(hidden_sizes=(round(256 * width),))
    if kind == "CNN":
        return sample.small_resnet(round(16 * width))
    return sample.small_vit(16 * round(4 * width))


def shifted(inputs: Tensor, pixels: int) -> Tensor:
    """Shift images to the right; repeat their left edge."""
    if not pixels:
        return inputs
    return nn.functional.pad(inputs, (pixels, 0, 0, 0), mode="replicate")[..., :-pixels]


def shuffled(inputs: Tensor, seed: int) -> Tensor:
    """Shuffle the tiles of all images in the same order."""
    cut = unfold(inputs, TILE, stride=TILE)  # (image, value, tile)
    order = torch.from_numpy(generator(seed, "lab bias order").permutation(cut.shape[2]))
    return fold(cut[..., order.to(cut.device)], inputs.shape[2:], TILE, stride=TILE)


def covered(inputs: Tensor, share: float, seed: int) -> Tensor:
    """Cover a share of the tiles of every image with the mean colour."""
    cut = unfold(inputs, TILE, stride=TILE)  # (image, value, tile)
    random = generator(seed, "lab bias cover").random((len(cut), cut.shape[2]))
    rank = torch.from_numpy(random.argsort(axis=1).argsort(axis=1)).to(cut.device)
    hidden = rank[:, None] < round(share * cut.shape[2])
    return fold(cut.masked_fill(hidden, 0.0), inputs.shape[2:], TILE, stride=TILE)


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
        positions = sample.small_vit(16 * max(round(4 * width), 1))
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
    size: Size, root: str | None, kind: str, images: int, width: float, seed: int
) -> Measured:
    """Train on a number of images; measure on disturbed images."""
    train, valid = sample.samples(root, size.hold_out, (images, size.valid), seed)
    how = sample.training(size.steps, size.batch_size)
    model = fresh(config(kind, width * size.scale), seed)
    learned = learn(model, sample.classifying(train, valid, how, seed=seed))
    inputs, labels = sample.tensors(valid)
    usual = sample.predicted(model, inputs)
    return {
        "parameters": parameters(model),
        "loss": learned.loss,
        "accuracy": sample.accuracy(model, inputs, labels),
        "same answer": {
            str(n): 100
            * (sample.predicted(model, shifted(inputs, n)) == usual).double().mean().item()
            for n in size.shifts
        },
        "shuffled": sample.accuracy(model, shuffled(inputs, seed), labels),
        "covered": {
            str(share): sample.accuracy(model, covered(inputs, share, seed), labels)
            for share in size.covered
        },
        "equivariance error": equivariance_error(model, inputs[:100]),
    }


def conclude(by_images: BySize, places: ByModel, size: Size) -> str:
    """Conclude which model wins with few and many images, and what pooling does."""
    few, many = min(size.images), max(size.images)
    parts = []
    for images in (few, many):
        mlp, cnn, vit = (by_images[kind][images] for kind in KINDS)
        parts.append(
            f"with {images:,} pictures the CNN is right {more(cnn, vit, 'accuracy')} often than "
            f"the ViT ({mean(cnn, 'accuracy')}% against {mean(vit, 'accuracy')}%) and "
            f"{more(cnn, mlp, 'accuracy')} often than the MLP ({mean(mlp, 'accuracy')}%)"
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


def run(bench: Bench, size: Size) -> Outcome:
    """Train each kind on each number of images; then other widths; then measure untrained ones."""
    once = partial(measure, size, bench.root)
    by_images = {
        kind: bench.seeded(kind + ", {} pictures", size.images, partial(once, kind), 1.0)
        for kind in KINDS
    }
    middle, many = size.images[len(size.images) // 2], max(size.images)
    by_width = {
        kind: bench.seeded(kind + ", {:g} times as wide", size.widths, partial(once, kind, middle))
        | {1.0: by_images[kind][middle]}
        for kind in ("CNN", "ViT")
    }
    untrained = ("CNN", "ViT", "ViT without positions")
    places = bench.seeded("untrained: {}", untrained, set_of_patches, size.scale)
    most = {kind: each[many] for kind, each in by_images.items()}
    shifted = {
        kind: {n: over(trials, "same answer", str(n)) for n in size.shifts}
        for kind, trials in most.items()
    }
    return conclude(by_images, places, size), {
        "by_images": by_images,
        "middle": middle,
        "many": many,
        "widths": [
            [kind, f"x {width:g}", trials[0]["parameters"], over(trials, "accuracy")]
            for kind, each in by_width.items()
            for width, trials in sorted(each.items())
        ],
        "disturbed": {
            kind: {
                "tiles shuffled: right, %": over(trials, "shuffled"),
                **{f"shifted {n}: same answer, %": shifted[kind][n] for n in size.shifts if n},
                "equivariance error, middle": error(trials, "middle"),
                "everywhere": error(trials, "everywhere"),
            }
            for kind, trials in most.items()
        },
        "places": places,
        "by_parameters": {
            kind: {trials[0]["parameters"]: trials for _, trials in sorted(each.items())}
            for kind, each in by_width.items()
        },
        "shifted": shifted,
        "covered": {
            kind: {share: over(trials, "covered", str(share)) for share in size.covered}
            for kind, trials in most.items()
        },
    }


def error(trials: Trials, where: str) -> Interval | None:
    """The equivariance error; None for an MLP."""
    measured = trials[0]["equivariance error"] is not None
    return over(trials, "equivariance error", where) if measured else None
