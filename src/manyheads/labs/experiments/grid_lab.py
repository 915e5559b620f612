"""V3, V7, E13: the effect of positions on images, and learned positions after training."""

from dataclasses import replace

import torch

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.cifar_sample import accuracy, classifying, samples, small_vit, tensors, training
from manyheads.labs.findings import interval, mean, more, over, values, verdict
from manyheads.labs.lab_training import fresh, learn
from manyheads.lens.measures.position_figures import along, cosines, mosaic
from manyheads.lens.panels import number
from manyheads.lens.rounding import rounded
from manyheads.models.image_encoder import Positions
from manyheads.nn.layers.positions import GridPositions
from manyheads.streams import generator

# Kind, and the initial std of learned positions: the paper's, and a larger one.
KINDS: dict[str, tuple[Positions, float]] = {
    "none": ("none", 0.0),
    "learned 1-D, std 0.02": ("learned", 0.02),
    "learned 1-D, std 0.5": ("learned", 0.5),
    "2-D sinusoids": ("sinusoidal-2d", 0.0),
    "relative": ("relative", 0.0),
}
PAPER = "learned 1-D, std 0.02"


def measure(kind: str, size: Size, root: str | None, seed: int) -> Measured:
    """Train, measure, and measure again with shuffled positions."""
    train, valid = samples(root, size.hold_out, (size.images, size.valid), seed)
    positions, std = KINDS[kind]
    small = small_vit(size.dim, size.layers, size.patch)
    model = fresh(replace(small, positions=positions, position_std=std), seed)
    learn(model, classifying(train, valid, training(size.steps, size.batch_size), seed=seed))
    inputs, labels = tensors(valid)
    measured: Measured = {"accuracy": accuracy(model, inputs, labels)}
    if isinstance(model.positions, GridPositions):
        table = model.positions.table.detach().clone().cpu()
        grid = model.config.grid
        similar = cosines(table)
        measured |= {"along": along(similar, grid), "table": similar.tolist(), "grid": list(grid)}
        order = generator(seed, "lab grid").permutation(len(table))
        with torch.no_grad():
            model.positions.table.copy_(table[order])
        measured["shuffled"] = accuracy(model, inputs, labels)
    return measured


def conclude(measured: dict[str, list[Measured]]) -> str:
    """Compare kinds of positions, and positions in a row or column with others."""
    paper, none = measured[PAPER], measured["none"]

    def percent(kind: str, what: str = "accuracy") -> str:
        return f"{mean(measured[kind], what)}%"

    best = max(measured, key=lambda kind: over(measured[kind], "accuracy").mean)
    changed = {1: "rises", -1: "falls", 0: "goes, not surely less,"}
    disorder = changed[verdict(values(paper, "shuffled"), values(paper, "accuracy"))]
    rows = [f["along"]["same row"] + f["along"]["same column"] for f in paper]
    rest = [2 * f["along"]["neither"] for f in paper]
    return (
        f"Without positions {percent('none')} come out right, with the best kind ({best}) "
        f"{percent(best)}, which is {more(measured[best], none, 'accuracy')}; 2-D sinusoids bring "
        f"{more(measured['2-D sinusoids'], none, 'accuracy')} than none "
        f'({percent("2-D sinusoids")}); with its positions in another order "{PAPER}" {disorder} '
        f"from {percent(PAPER)} to {percent(PAPER, 'shuffled')}; and its positions of one row or "
        f"column are {more(rows, rest)} alike than others (cosine "
        f"{number(interval([r / 2 for r in rows]).mean)} against "
        f"{number(interval([r / 2 for r in rest]).mean)})."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Train each kind with each seed."""
    measured = bench.seeded("{}", KINDS, measure, size, bench.root)
    first = measured[PAPER][0]
    grid = (first["grid"][0], first["grid"][1])
    learned = {kind: each for kind, each in measured.items() if "along" in each[0]}
    shuffled = {kind: over(each, "shuffled") for kind, each in learned.items()}
    return conclude(measured), {
        "measured": measured,
        "right": {
            kind: {
                "accuracy": over(each, "accuracy"),
                "positions shuffled after training": shuffled.get(kind),
            }
            for kind, each in measured.items()
        },
        "learned": learned,
        "cosines": {"values": rounded(mosaic(torch.tensor(first["table"]), grid)), "tile": [*grid]},
    }
