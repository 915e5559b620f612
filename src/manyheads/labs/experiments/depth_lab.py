"""T11: residual connections and norms, and the gradients at the lowest of many layers."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor

from manyheads.labs.bench import Bench, Measured
from manyheads.labs.catalogue import read_sizes
from manyheads.labs.findings import Findings, curves, leader, mean, over, table, values
from manyheads.labs.lab_training import fresh, learn, training
from manyheads.labs.symbols import BATCH, FIRST, Labelled, encoder, labelling, looking_back
from manyheads.lens.panels import Curve, Lines
from manyheads.models.components import Norm
from manyheads.models.tagger import AttentiveContext, Tagger
from manyheads.nn.blocks.block import EncoderBlock
from manyheads.nn.layers.residual import PostNorm
from manyheads.tokenwise.token_task import TokenTrainConfig
from manyheads.tokenwise.token_task import measure as score


class Size(NamedTuple):
    """The sizes of training and measurement."""

    depths: tuple[int, ...]
    steps: int
    dim: int = 32
    symbols: int = 8
    length: int = 16
    train: int = 5000
    max_tokens: int = 1024
    back: int = 2


SIZES = read_sizes("depth", Size)


class NoResidual(PostNorm):
    """LayerNorm(Sublayer(x)): post-norm without the residual connection."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Normalise the sub-layer's output, without x."""
        return self.norm(self.dropout(y))


class Bare(NoResidual):
    """Sublayer(x): neither norm nor connection."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sub-layer's output."""
        return self.dropout(y)


# Position of the norm, replacement of the residual part, share of warm-up steps.
ARRANGEMENTS: dict[str, tuple[Norm, type[NoResidual] | None, float]] = {
    "neither": ("post", Bare, 0.2),
    "norm alone": ("post", NoResidual, 0.2),
    "post-norm": ("post", None, 0.0),
    "pre-norm": ("pre", None, 0.0),
    "post-norm, warm-up": ("post", None, 0.2),  # last: before training it is post-norm
}


def tagger(norm: Norm, part: type[NoResidual] | None, depth: int, size: Size, seed: int) -> Tagger:
    """Build an encoder with `part` in place of its residual connections."""
    config = encoder(FIRST + size.symbols, size.symbols, size.dim, layers=depth)
    model = fresh(replace(config, norm=norm), seed)
    if part is not None:
        for block in blocks(model):
            block.around_attention = part(size.dim)
            block.around_feedforward = part(size.dim)
        model.to(next(model.parameters()).device)
    return model


def blocks(model: Tagger) -> list[EncoderBlock]:
    """List the layers, lowest first."""
    return list(cast(AttentiveContext, model.context).encoder.blocks)


def gradients(model: Tagger, texts: Labelled) -> list[float]:
    """The gradient norm of each layer's matrices, lowest first."""
    batch = texts.batch(texts.kept, epoch=0).to(next(model.parameters()).device)
    logits = model(batch.tokens, batch.scored)
    torch.nn.functional.cross_entropy(logits, batch.targets).backward()
    norms = []
    for block in blocks(model):
        squares = [
            p.grad.square().sum() for p in block.parameters() if p.grad is not None and p.ndim > 1
        ]
        norms.append(torch.stack(squares).sum().sqrt().item())
    model.zero_grad(set_to_none=True)
    return norms


def measure(name: str, depth: int, size: Size, seed: int) -> Measured:
    """Measure the gradients of an untrained stack, then train it."""
    norm, part, warm = ARRANGEMENTS[name]
    config = training(
        TokenTrainConfig,
        size.steps,
        2e-3,
        max_tokens=size.max_tokens,
        warmup=round(warm * size.steps),
    )
    draw = partial(looking_back, [size.length], symbols=size.symbols, back=[size.back], seed=seed)
    train, valid = draw(count=size.train, name="train"), draw(count=128, name="valid")
    model = tagger(norm, part, depth, size, seed)
    first = gradients(model, valid)
    learned = learn(model, labelling(train, valid, config, seed=seed))
    return {
        "gradients": first,
        "loss": learned.loss,
        "accuracy": score(model, valid, BATCH)["accuracy"],
    }


def conclude(found: dict[str, dict[int, list[Measured]]]) -> str:
    """Conclude how the gradient changes over the deepest stack, and which stacks learn."""
    deep = max(found["pre-norm"])
    lowest = {
        name: mean(each[deep], "gradients", 0)
        for name, each in found.items()
        if name != "post-norm, warm-up"  # before training the same as without
    }
    learned = {name: each[deep] for name, each in found.items()}
    best = leader({name: values(trials, "accuracy") for name, trials in learned.items()})
    return (
        f"In {deep} layers before training, the gradient that reaches the lowest layer is "
        + ", ".join(f"{norm} ({name})" for name, norm in lowest.items())
        + "; after equally many updates such a stack is right in "
        + ", ".join(f"{mean(trials, 'accuracy')}% ({name})" for name, trials in learned.items())
        + f" of the answers, most often with {best}."
    )


def run(bench: Bench) -> Findings:
    """Train each arrangement at each depth with each seed."""
    size = bench.choose(SIZES)
    found = {
        name: {
            depth: bench.each_seed(f"{name}, {depth} layers", partial(measure, name, depth, size))
            for depth in size.depths
        }
        for name in ARRANGEMENTS
    }
    deep = max(size.depths)
    return Findings(
        conclude(found),
        [
            table("Right answers, %, by number of layers", "arrangement", found, "accuracy"),
            *(
                table(
                    f"Gradient of the {where} layer, before training",
                    "arrangement",
                    found,
                    "gradients",
                    place,
                )
                for where, place in (("lowest", 0), ("top", -1))
            ),
        ],
        [
            Lines(
                f"Gradient of each of {deep} layers, before training",
                "layer (1 is the lowest)",
                "norm",
                [
                    Curve.over(
                        name, [over(each[deep], "gradients", n).mean for n in range(deep)], 1
                    )
                    for name, each in found.items()
                    if name != "post-norm, warm-up"
                ],
                log_y=True,
            ),
            Lines(
                f"After {size.steps} updates",
                "layers",
                "right, %",
                curves(found, "accuracy"),
                log_x=True,
            ),
        ],
    )
