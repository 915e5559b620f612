"""V11, E4: attention covers the whole image from layer 1, a 3 x 3 convolution adds one pixel."""

import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from manyheads.labs import cifar_sample as sample
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import ByModel, Trials, interval, mean, more, over, values
from manyheads.labs.lab_training import fresh, learn
from manyheads.lens.measures.attention_distance import distances_by_layer
from manyheads.lens.measures.cka import cka_matrix
from manyheads.lens.measures.linear_probe import probe
from manyheads.lens.measures.receptive_field import layers_needed, measured_field, receptive_field
from manyheads.lens.panels import Interval, number
from manyheads.lens.trace.states import CONVOLUTIONS, outputs, pooled
from manyheads.models.resnet import ResNet, ResNetConfig
from manyheads.nn.vision.convolution import Convolution
from manyheads.nn.vision.residual_block import BasicBlock

SAID = 14  # layers, as slides have it: "more than 14 for 32 pixels"


def chain(layers: int) -> nn.Sequential:
    """A stack of 3 x 3 convolutions with stride 1 and positive weights."""
    built = nn.Sequential(*(Convolution(1, 1, 3) for _ in range(layers)))
    for parameter in built.parameters():
        nn.init.ones_(parameter)
    return built.double()


def fields(numbers: tuple[int, ...]) -> Measured:
    """The receptive field of n convolutions: by formula, and measured."""
    inputs = torch.ones(1, 1, 1, 81, dtype=torch.float64).expand(1, 1, 3, 81)
    return {
        str(n): {"formula": receptive_field(n), "counted": measured_field(chain(n), inputs, 40)}
        for n in numbers
    }


def compared(model: nn.Module, inputs: Tensor) -> list[Tensor]:
    """The outputs of the ViT's blocks, or of the ResNet's stem and blocks."""
    states = outputs(model, inputs)
    return [each.x.float().cpu() for each in states if each.layer or each.stack == CONVOLUTIONS]


def resnet(size: Size) -> ResNetConfig:
    """The ResNet."""
    return replace(sample.small_resnet(size.width), depths=(size.blocks,) * 3)


def reach(model: ResNet) -> list[int]:
    """The measured receptive field of the stem and of each block, in pixels."""
    model = model.double().eval()
    inputs = torch.rand(1, 3, 33, 97, dtype=torch.float64)
    blocks = [part for part in model.modules() if isinstance(part, BasicBlock)]
    widths, places = [], [model.stem, *blocks]
    for last in range(len(places)):
        part = nn.Sequential(*places[: last + 1])
        with torch.no_grad():
            width = part(inputs).shape[3]
        widths.append(measured_field(part, inputs, width // 2))
    return widths


def measure(kind: str, size: Size, root: str | None, seed: int) -> Measured:
    """Train a model; measure receptive fields, layer similarity and probe accuracy."""
    train, valid = sample.cifar(root, size.hold_out)
    train = sample.some(train, size.images, seed)
    how = sample.training(size.steps, size.batch_size)
    model: nn.Module = fresh(
        sample.small_vit(size.dim, size.layers, size.patch) if kind == "ViT" else resnet(size), seed
    )
    inputs, labels = sample.tensors(sample.some(valid, size.probed, 0))
    few = inputs[: size.compared]
    measured: Measured = {}
    if kind == "ViT":
        measured["distance at first"] = distances_by_layer(model, few)
    learn(model, sample.classifying(train, valid.select(torch.arange(10).numpy()), how, seed=seed))
    measured["accuracy"] = sample.accuracy(model, inputs, labels)
    if kind == "ViT":
        measured["distance"] = distances_by_layer(model, few)
    measured["likeness"] = cka_matrix(compared(model, few))
    known, classes = sample.tensors(sample.some(train, size.probed, 0))
    fitted = [pooled(each) for each in compared(model, known)]
    tested = [pooled(each) for each in compared(model, inputs)]
    measured["probe"] = [
        probe(a, classes.cpu(), b, labels.cpu()) for a, b in zip(fitted, tested, strict=True)
    ]
    return measured


def mean_of(tables: list[list[list[float]]]) -> list[list[float | None]]:
    """The mean of one table per seed."""
    return torch.tensor(tables, dtype=torch.float64).mean(dim=0).tolist()


def uniform(table: list[list[float]]) -> float:
    """Mean similarity of two different layers."""
    values = torch.tensor(table, dtype=torch.float64)
    return values[~torch.eye(len(values), dtype=torch.bool)].mean().item()


def uniform_distance(side: int, patch: int) -> float:
    """The mean distance in pixels that attention to all patches alike has, on a square grid."""
    row = torch.arange(side, dtype=torch.float64)
    places = torch.cartesian_prod(row, row)
    return patch * torch.cdist(places, places).mean().item()


def conclude(measured: ByModel, reached: list[int], needed: int, patch: int) -> str:
    """Conclude on attention distance, layer similarity, and where classes appear."""
    first = interval([sum(f["distance"][0]) / len(f["distance"][0]) for f in measured["ViT"]]).mean
    widest = interval([max(f["distance"][0]) for f in measured["ViT"]]).mean
    alike = {kind: [uniform(f["likeness"]) for f in each] for kind, each in measured.items()}
    word = more(alike["ViT"], alike["ResNet"])
    means = {kind: number(interval(each).mean) for kind, each in alike.items()}
    probes = {kind: [values(each, "probe", n) for n in (0, -1)] for kind, each in measured.items()}
    return (
        f"32 pixels need {needed} convolutions of 3 x 3, where slides say more than {SAID} "
        f"({needed - 1} see {receptive_field(needed - 1)}); the first layer of the ViT looks "
        f"{number(first)} pixels far in the mean, its widest head {number(widest)}, where "
        f"attention to all patches alike looks {number(uniform_distance(32 // patch, patch))}; the "
        f"ResNet's first sees {reached[0]} pixels and its last block {reached[-1]}; the ViT's "
        f"layers are {word} alike than the ResNet's (mean CKA {means['ViT']} against "
        f"{means['ResNet']}); and a linear probe is right "
        + " and ".join(
            f"{more(last, first)} often behind the last layer of the {kind} than behind the first "
            f"({mean(measured[kind], 'probe', -1)}% against {mean(measured[kind], 'probe', 0)}%)"
            for kind, (first, last) in probes.items()
        )
        + "."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure receptive fields, then train both models with each seed."""
    needed = layers_needed(32)
    numbers = (1, 2, 4, 8, SAID, needed - 1, needed)
    counted = bench.trial("receptive fields", partial(fields, numbers))
    reached: list[int] = bench.trial(
        "receptive field of the ResNet", lambda: {"reach": reach(fresh(resnet(size), 1).cpu())}
    )["reach"]
    measured = bench.seeded("{}", ("ViT", "ResNet"), measure, size, bench.root)

    def heads(what: str, pick: Callable[[list[float]], float]) -> dict[int, float]:
        layers = range(size.layers)
        return {n + 1: interval([pick(f[what][n]) for f in measured["ViT"]]).mean for n in layers}

    def probes(trials: Trials) -> dict[float, Interval]:
        count = len(trials[0]["probe"])
        return {n / max(count - 1, 1): over(trials, "probe", n) for n in range(count)}

    looks = {
        "at first": heads("distance at first", statistics.fmean),
        "nearest head": heads("distance", min),
        "mean": heads("distance", statistics.fmean),
        "farthest head": heads("distance", max),
    }
    return conclude(measured, reached, needed, size.patch), {
        "counted": {n: counted[str(n)] for n in numbers},
        "by_layer": {n: {name: look[n] for name, look in looks.items()} for n in looks["mean"]},
        "altogether": {
            kind: [trial | {"alike": uniform(trial["likeness"])} for trial in trials]
            for kind, trials in measured.items()
        },
        "reaches": {
            "ViT: farthest head": looks["farthest head"],
            "ViT: mean of heads": looks["mean"],
            "ViT: nearest head": looks["nearest head"],
            "ResNet: receptive field": dict(enumerate(reached, 1)),
        },
        "probes": {kind: probes(trials) for kind, trials in measured.items()},
        "alike": {
            kind: {"values": mean_of([f["likeness"] for f in trials])}
            for kind, trials in measured.items()
        },
    }
