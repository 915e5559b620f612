"""V10, E13: what a convolution knows before it has learned, and what that is worth in pictures."""

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from manyheads.lab.bench import Bench, Lab, Measured, Scale
from manyheads.lab.findings import Findings, interval, more
from manyheads.lab.learn import fresh, learn
from manyheads.lab.pictures import (
    accuracy,
    cifar,
    classifying,
    named,
    small_resnet,
    small_vit,
    some,
    tensors,
    training,
)
from manyheads.lens.panels import Curve, Lines, Table, number
from manyheads.models.mlp import MlpConfig
from manyheads.models.presets import Config
from manyheads.models.resnet import ResNet
from manyheads.models.vit import Vit
from manyheads.streams import generator

TILE = 8  # pixels: the side of what is shuffled and covered
STEP = 4  # pixels: one patch of the ViT, and one place of the CNN's last map


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is learned and measured."""

    steps: int
    images: tuple[int, ...]  # how many are learned from
    widths: tuple[float, ...]  # times the usual width, at the middle number of images
    valid: int
    hold_out: int = 5000
    batch_size: int = 64
    scale: float = 1.0
    shifts: tuple[int, ...] = (0, 1, 2, 4, 8)
    covered: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)


SIZES: dict[Scale, Size] = {
    "full": Size(steps=500, images=(500, 2000, 8000, 32000), widths=(0.5, 2.0), valid=2000),
    "quick": Size(
        steps=10,
        images=(200, 400),
        widths=(0.5,),
        valid=100,
        batch_size=32,
        scale=0.5,
        shifts=(0, 4),
        covered=(0.0, 0.5),
    ),
    "smoke": Size(
        steps=2,
        images=(10, 20),
        widths=(2.0,),
        valid=10,
        hold_out=20,
        batch_size=8,
        scale=0.25,
        shifts=(0, 4),
        covered=(0.0, 0.5),
    ),
}
KINDS = ("MLP", "CNN", "ViT")


def config(kind: str, width: float) -> Config:
    """A model that trains in a minute, and one of its kind that is wider or narrower."""
    if kind == "MLP":
        return MlpConfig(hidden=(round(256 * width),))
    if kind == "CNN":
        return small_resnet(round(16 * width))
    return small_vit(16 * round(4 * width))


def shifted(pictures: Tensor, pixels: int) -> Tensor:
    """Move pictures to the right; what comes in from the left repeats their edge."""
    if not pixels:
        return pictures
    return nn.functional.pad(pictures, (pixels, 0, 0, 0), mode="replicate")[..., :-pixels]


def tiles(pictures: Tensor) -> Tensor:
    """Cut into tiles: (picture, tile, channel, row, column)."""
    cut = pictures.unfold(2, TILE, TILE).unfold(3, TILE, TILE)  # picture channel y x row column
    return cut.flatten(2, 3).transpose(1, 2)


def untiled(cut: Tensor) -> Tensor:
    """Put tiles together again."""
    side = round(cut.shape[1] ** 0.5)
    rows = cut.unflatten(1, (side, side)).permute(
        0, 3, 1, 4, 2, 5
    )  # picture channel y row x column
    return rows.flatten(4, 5).flatten(2, 3)


def shuffled(pictures: Tensor, seed: int) -> Tensor:
    """Put the tiles of every picture in one other order."""
    cut = tiles(pictures)
    order = torch.from_numpy(generator(seed, "lab bias order").permutation(cut.shape[1]))
    return untiled(cut[:, order.to(cut.device)])


def covered(pictures: Tensor, share: float, seed: int) -> Tensor:
    """Cover a share of the tiles of every picture with the mean colour."""
    cut = tiles(pictures).clone()
    random = generator(seed, "lab bias cover").random(cut.shape[:2])
    rank = torch.from_numpy(random.argsort(axis=1).argsort(axis=1)).to(cut.device)
    cut[rank < round(share * cut.shape[1])] = 0.0
    return untiled(cut)


@torch.inference_mode()
def feature_map(model: nn.Module, pictures: Tensor) -> Tensor | None:
    """The last features in their places: (picture, dim, row, column); None if they have none."""
    model.eval()
    if isinstance(model, Vit):
        tokens = model.features(pictures)
        grid = model.grid(pictures.shape[2], pictures.shape[3])
        return tokens[:, model.pool.extra :].transpose(1, 2).unflatten(2, grid)
    return model.features(pictures) if isinstance(model, ResNet) else None


def change(a: Tensor, b: Tensor) -> float:
    """How far b is from a, as a share of a's length."""
    return ((a - b).norm() / a.norm()).item()


def equivariance_error(model: nn.Module, pictures: Tensor) -> dict[str, float] | None:
    """How far the features of a shifted picture are from the shifted features, as a share.

    One patch to the right; 0 is equivariant. The ResNet's last map sees 25 of 32 pixels, so the
    middle column alone is free of the borders; everywhere else zero padding and what came in on
    the left are seen too (Islam et al. 2020: padding is how a CNN knows places).
    """
    still, moved = feature_map(model, pictures), feature_map(model, shifted(pictures, STEP))
    if still is None or moved is None:
        return None
    a, b = still[..., :-1], moved[..., 1:]  # the same part of the picture, where it stays in view
    middle = a.shape[3] // 2
    return {"everywhere": change(a, b), "middle": change(a[..., middle], b[..., middle])}


def set_of_patches(kind: str, width: float, seed: int) -> Measured:
    """Turn a picture round by one patch: how much do single tokens change, and their mean?

    Untrained, so that only the architecture speaks. What leaves on the right comes in on the left.
    """
    if kind == "CNN":
        model = fresh(config("CNN", width), seed)
    else:
        positions = small_vit(16 * max(round(4 * width), 1))
        if kind.endswith("without positions"):
            positions = replace(positions, positions="none")
        model = fresh(positions, seed)
    random = torch.Generator().manual_seed(seed)
    pictures = torch.randn(8, 3, 32, 32, generator=random).to(next(model.parameters()).device)
    before, after = (feature_map(model, each) for each in (pictures, pictures.roll(STEP, dims=3)))
    assert before is not None
    assert after is not None
    return {
        "one place": change(before, after),
        "mean": change(before.mean(dim=(2, 3)), after.mean(dim=(2, 3))),
    }


def measure(
    kind: str, width: float, images: int, size: Size, root: str | None, seed: int
) -> Measured:
    """Train on so many pictures; disturb the pictures it is measured on."""
    train, valid = cifar(root, size.hold_out)
    train, valid = some(train, images, seed), some(valid, size.valid, 0)
    how = training(size.steps, size.batch_size)
    model = fresh(config(kind, width), seed)
    learned = learn(model, classifying(train, valid, how, seed=seed), how, seed=seed)
    pictures, labels = tensors(valid)
    usual = named(model, pictures)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": learned.loss,
        "accuracy": accuracy(model, pictures, labels),
        "same answer": {
            str(n): 100 * (named(model, shifted(pictures, n)) == usual).double().mean().item()
            for n in size.shifts
        },
        "shuffled": accuracy(model, shuffled(pictures, seed), labels),
        "covered": {
            str(share): accuracy(model, covered(pictures, share, seed), labels)
            for share in size.covered
        },
        "equivariance error": equivariance_error(model, pictures[:100]),
    }


def conclude(
    by_images: dict[str, dict[int, list[Measured]]], places: dict[str, list[Measured]], size: Size
) -> str:
    """Say who wins with few and with many pictures, and what pooling does."""

    def of(kind: str, images: int, what: str = "accuracy") -> list[float]:
        return [each[what] for each in by_images[kind][images]]

    few, many = min(size.images), max(size.images)
    parts = []
    for images in (few, many):
        word = more(of("CNN", images), of("ViT", images))
        parts.append(
            f"with {images:,} pictures the CNN is right {word} often than the ViT "
            f"({number(interval(of('CNN', images)).mean)}% against "
            f"{number(interval(of('ViT', images)).mean)}%, MLP "
            f"{number(interval(of('MLP', images)).mean)}%)"
        )

    def error(kind: str, where: str) -> str:
        each = by_images[kind][many]
        return number(interval([found["equivariance error"][where] for found in each]).mean)

    free = places["ViT without positions"]
    tokens = interval([each["one place"] for each in free]).mean
    mean = interval([each["mean"] for each in free]).mean
    invariant = mean < 1e-4 < tokens
    pooling = "leaves the mean as it is" if invariant else "changes the mean too"
    therefore = ": what is invariant is the pooling, not the softmax" if invariant else ""
    return (
        f"After {size.steps} updates, {' and '.join(parts)}; a shift by one patch moves the CNN's "
        f"features along with an error of {error('CNN', 'middle')} in the middle and of "
        f"{error('CNN', 'everywhere')} with the borders, whose padding tells places, the ViT's of "
        f"{error('ViT', 'middle')} and {error('ViT', 'everywhere')}; and turning a "
        f"picture round by a patch changes every token of an untrained ViT without positions (by "
        f"{number(tokens)} of its length) but {pooling} ({number(mean)}){therefore}."
    )


def run(bench: Bench) -> Findings:
    """Train each kind on each number of pictures; then other widths; then untrained ones."""
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

    def curve(kind: str, group: str, keys: tuple[float, ...]) -> Curve:
        found = by_images[kind][many]
        values = [interval([f[group][str(key)] for f in found]) for key in keys]
        return Curve.of(kind, keys, values)

    return Findings(
        conclude(by_images, places, size),
        [
            Table(
                "Right answers, %, by number of pictures learned from",
                ["model", "parameters", *(f"{n:,}" for n in size.images)],
                [
                    [kind, each[many][0]["parameters"]]
                    + [interval([f["accuracy"] for f in each[n]]) for n in size.images]
                    for kind, each in by_images.items()
                ],
            ),
            Table(
                f"Right answers, %, by size of the model, {middle:,} pictures",
                ["model", "width", "parameters", "right, %"],
                [
                    [kind, f"x {width:g}", f[0]["parameters"], interval([m["accuracy"] for m in f])]
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
                        interval([f["shuffled"] for f in each[many]]),
                        *(
                            interval([f["same answer"][str(n)] for f in each[many]])
                            for n in size.shifts
                            if n
                        ),
                        *(
                            None
                            if each[many][0]["equivariance error"] is None
                            else interval([f["equivariance error"][where] for f in each[many]])
                            for where in ("middle", "everywhere")
                        ),
                    ]
                    for kind, each in by_images.items()
                ],
            ),
            Table(
                "Untrained, the picture turned round by one patch: relative change",
                ["model", "of the vector at a place", "of the mean over places"],
                [
                    [
                        name,
                        interval([f["one place"] for f in found]),
                        interval([f["mean"] for f in found]),
                    ]
                    for name, found in places.items()
                ],
            ),
        ],
        [
            Lines(
                "Number of pictures",
                "pictures learned from",
                "right, %",
                [
                    Curve.of(
                        kind,
                        size.images,
                        [interval([f["accuracy"] for f in each[n]]) for n in size.images],
                    )
                    for kind, each in by_images.items()
                ],
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
                        [interval([m["accuracy"] for m in f]) for _, f in sorted(each.items())],
                    )
                    for kind, each in by_width.items()
                ],
                log_x=True,
            ),
            Lines(
                "Shifted pictures",
                "pixels to the right",
                "same answer, %",
                [curve(kind, "same answer", size.shifts) for kind in KINDS],
            ),
            Lines(
                "Covered pictures",
                "share of tiles covered",
                "right, %",
                [curve(kind, "covered", size.covered) for kind in KINDS],
            ),
        ],
    )


LAB = Lab(
    method=(
        "A perceptron, a ResNet of eight layers and a small ViT learn CIFAR-10 from the same "
        "pictures under the same trainer (shifts, mirroring, AdamW, equally many updates, whatever "
        "the number of pictures), and are measured on pictures held out of the training files: as "
        "they are, shifted, with their tiles of 8 pixels in another order, and with tiles covered. "
        "The equivariance error compares the features of a shifted picture with the shifted "
        "features: in the middle column, which is as far from the borders as the CNN sees, and "
        "everywhere that stays in view."
    ),
    limits=(
        "The crossover of the paper, where a ViT overtakes CNNs, lies between 9 and 90 million "
        "pictures and cannot be shown with tens of thousands. One learning rate and few updates "
        "for all: a longer schedule and stronger augmentation move the ViT most."
    ),
    run=run,
)
