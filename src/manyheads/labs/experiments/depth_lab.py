"""T11: residual connections and norms, and the gradients at the lowest of many layers."""

from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import BySize, leader, mean, over
from manyheads.labs.lab_training import fresh
from manyheads.labs.symbols import FIRST, Labelled, accuracy, encoder, learn_labels, looking_back
from manyheads.models.components import Norm
from manyheads.models.tagger import AttentiveContext, Tagger
from manyheads.nn.blocks.block import EncoderBlock
from manyheads.nn.layers.residual import PostNorm


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
    how = {"steps": size.steps, "warmup": round(warm * size.steps), "max_tokens": size.max_tokens}
    draw = partial(looking_back, [size.length], symbols=size.symbols, back=[size.back], seed=seed)
    train, valid = draw(count=size.train, name="train"), draw(count=128, name="valid")
    model = tagger(norm, part, depth, size, seed)
    first = gradients(model, valid)
    learned = learn_labels(model, train, valid, 2e-3, seed=seed, **how)
    return {"gradients": first, "loss": learned.loss, "accuracy": accuracy(model, valid)}


def conclude(measured: BySize) -> str:
    """Conclude how the gradient changes over the deepest stack, and which stacks learn."""
    deep = max(measured["pre-norm"])
    lowest = {
        name: mean(each[deep], "gradients", 0)
        for name, each in measured.items()
        if name != "post-norm, warm-up"  # before training the same as without
    }
    learned = {name: each[deep] for name, each in measured.items()}
    return (
        f"In {deep} layers before training, the gradient that reaches the lowest layer is "
        + ", ".join(f"{norm} ({name})" for name, norm in lowest.items())
        + "; after equally many updates such a stack is right in "
        + ", ".join(f"{mean(trials, 'accuracy')}% ({name})" for name, trials in learned.items())
        + f" of the answers, most often with {leader(learned, 'accuracy')}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Train each arrangement at each depth with each seed."""
    measured = {
        name: bench.seeded(name + ", {} layers", size.depths, partial(measure, name), size)
        for name in ARRANGEMENTS
    }
    deep = max(size.depths)
    by_layer = {
        name: {n + 1: over(each[deep], "gradients", n).mean for n in range(deep)}
        for name, each in measured.items()
        if name != "post-norm, warm-up"
    }
    return conclude(measured), {"measured": measured, "deep": deep, "by_layer": by_layer}
