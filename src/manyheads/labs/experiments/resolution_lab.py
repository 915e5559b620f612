"""V12, V16: attention cost is quadratic in pixels; window and linear attention are linear."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from manyheads.labs import cifar_sample as sample
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.cifar_sample import cifar
from manyheads.labs.findings import interval, over, verdict
from manyheads.labs.lab_training import fresh, learn
from manyheads.labs.timing import best_of, saved_bytes
from manyheads.lens.panels import number
from manyheads.models.model_config import ModelConfig
from manyheads.models.swin import SwinConfig

SOFTMAX, LINEAR, WINDOWS, CNN = "ViT", "ViT, linear attention", "Swin, windows", "ResNet"
PATCH = 4


def models(side: int, size: Size) -> dict[str, ModelConfig]:
    """Four models for square images of this side, with patches of 4."""
    shape, half = dict[str, Any](height=side, width=side), size.layers // 2
    plain = replace(sample.small_vit(size.dim, size.layers, PATCH), **shape)
    windows = dict[str, Any](patch=PATCH, heads=(2, 4), window=(4, 4), **shape)
    windows |= {"expansion": 2.0, "classes": 10}
    return {
        SOFTMAX: plain,
        LINEAR: replace(plain, attention="linear"),
        WINDOWS: SwinConfig(dim=size.dim // 2, layers=(half, half), **windows),
        CNN: replace(sample.small_resnet(size.width), **shape),
    }


def cost(side: int, size: Size) -> Measured:
    """Time a forward pass and a training step of one image; count saved bytes."""
    built = {name: fresh(config, 1) for name, config in models(side, size).items()}
    device = next(built[SOFTMAX].parameters()).device
    picture = torch.randn(1, 3, side, side, device=device)

    for model in built.values():  # in training mode batch norm needs more than one image
        model.eval()

    @torch.inference_mode()
    def forward(model: torch.nn.Module) -> None:
        model(picture)

    def update(model: torch.nn.Module) -> None:
        model(picture).logsumexp(dim=-1).sum().backward()
        model.zero_grad(set_to_none=True)

    read, learned = (
        best_of(size.rounds, {name: partial(work, model) for name, model in built.items()})
        for work in (forward, update)
    )
    return {
        name: {
            "forward": read[name],
            "update": learned[name],
            "kept": saved_bytes(partial(model, picture), model.parameters()),
        }
        for name, model in built.items()
    }


def tokens(side: int) -> int:
    """The number of patches of an image."""
    return (side // PATCH) ** 2


def growth(sides: list[int], values: list[float]) -> float:
    """The exponent of a cost in pixels, between the two largest images."""
    (a, b), (x, y) = sides[-2:], values[-2:]
    return math.log(y / x) / math.log((b / a) ** 2)


def race(kind: str, size: Size, root: str | None, seed: int) -> Measured:
    """Train at 32 pixels; record accuracy and seconds of training."""
    train, valid = sample.samples(root, size.hold_out, (size.images, size.valid), seed)
    often = {"log_every": size.every, "validate_every": size.every}
    how = sample.training(size.steps, size.batch_size, **often)
    model = fresh(models(32, size)[kind], seed)
    learned = learn(model, sample.classifying(train, valid, how, seed=seed))
    seconds, steps, spent, right = [], 0, 0.0, []
    for line in learned.lines:
        if "images_per_second" in line:
            spent += (line["step"] - steps) * size.batch_size / line["images_per_second"]
            steps = int(line["step"])
        if "val_accuracy" in line:
            seconds.append(spent)
            right.append(line["val_accuracy"])
    return {"seconds": seconds, "right": right, "images a second": steps * size.batch_size / spent}


def reached(race: Measured, target: float) -> float:
    """Seconds of training until an accuracy is first reached."""
    return next(s for s, r in zip(race["seconds"], race["right"], strict=True) if r >= target)


def conclude(costs: dict[int, Measured], races: dict[str, list[Measured]]) -> str:
    """Conclude on the exponents, and which model reaches an accuracy first."""
    sides = sorted(costs)
    powers = {
        name: growth(sides, [costs[side][name]["forward"] for side in sides])
        for name in costs[sides[0]]
    }
    targets = [
        min(max(a["right"]), max(b["right"]))
        for a, b in zip(races[SOFTMAX], races[CNN], strict=True)
    ]
    time = {
        name: [reached(f, target) for f, target in zip(each, targets, strict=True)]
        for name, each in races.items()
    }
    sign = verdict(time[SOFTMAX], time[CNN])
    word = {1: "later than", -1: "sooner than", 0: "not surely sooner than"}[sign]
    return (
        f"From {sides[-2]} to {sides[-1]} pixels the time of a picture grows with the pixels to "
        f"the power of "
        + ", ".join(f"{number(power)} ({name})" for name, power in powers.items())
        + f", and one head's map has {tokens(sides[-1]) ** 2:,} scores; at 32 pixels the ViT "
        f"reaches the accuracy that both reach ({number(interval(targets).mean)}%) {word} the "
        f"ResNet ({number(interval(time[SOFTMAX]).mean)} s against "
        f"{number(interval(time[CNN]).mean)} s of training)."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Time all sizes, then train two models and compare accuracy over time."""
    cifar(bench.root, size.hold_out)  # missing data are reported before minutes have passed
    costs = bench.measured("{} pixels", size.sides, cost, size)
    races = bench.seeded("race, {}", (SOFTMAX, CNN), race, size, bench.root)
    return conclude(costs, races), {
        what: {
            side: {"tokens": tokens(side)}
            | {name: scale * measured[name][what] for name in models(32, size)}
            for side, measured in costs.items()
        }
        for what, scale in (("forward", 1000), ("update", 1000), ("kept", 1e-6))
    } | {
        "learning": {
            name: {
                "pictures a second": over(trials, "images a second"),
                "best, %": interval([max(f["right"]) for f in trials]),
            }
            for name, trials in races.items()
        },
        "race": {
            name: dict(zip(first["seconds"], first["right"], strict=True))
            for name, (first, *_) in races.items()
        },
    }
