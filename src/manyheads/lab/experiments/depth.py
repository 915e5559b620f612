"""T11: residual connections and norms, and what gradients reach the lowest of many layers."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from manyheads.lab.bench import Bench, Lab, Measured, Scale
from manyheads.lab.findings import Findings, interval, leader
from manyheads.lab.learn import fresh, learn
from manyheads.lab.symbols import BATCH, FIRST, Asked, asking, looking_back, training
from manyheads.lens.panels import Curve, Lines, Table, number
from manyheads.models.parts import Norm
from manyheads.models.tagger import AttentiveContext, EncoderTaggerConfig, Tagger
from manyheads.nn.block import EncoderBlock
from manyheads.nn.residual import PostNorm, Sublayer
from manyheads.tasks.tokenwise import TokenTrainConfig
from manyheads.tasks.tokenwise import measure as score


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is learned and measured."""

    depths: tuple[int, ...]
    steps: int
    dim: int = 32
    symbols: int = 8
    length: int = 16
    train: int = 5000
    max_tokens: int = 1024
    back: int = 2


SIZES: dict[Scale, Size] = {
    "full": Size(depths=(2, 6, 12, 24), steps=500),
    "quick": Size(depths=(2, 8), steps=30, train=500, max_tokens=256),
    "smoke": Size(depths=(1, 3), steps=2, dim=8, symbols=3, length=6, train=10, max_tokens=64),
}


class NoResidual(PostNorm):
    """LayerNorm(Sublayer(x)): what post-norm is without the connection around the sub-layer."""

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Normalise what the sub-layer says, and forget x."""
        return self.norm(self.dropout(sublayer(x)))


class Bare(NoResidual):
    """Sublayer(x): neither norm nor connection."""

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Answer what the sub-layer says."""
        return self.dropout(sublayer(x))


# Where the norm stands, what takes the place of the residual part, which share of steps is warm-up.
ARRANGEMENTS: dict[str, tuple[Norm, type[NoResidual] | None, float]] = {
    "neither": ("post", Bare, 0.2),
    "norm alone": ("post", NoResidual, 0.2),
    "post-norm": ("post", None, 0.0),
    "pre-norm": ("pre", None, 0.0),
    "post-norm, warm-up": ("post", None, 0.2),  # last: before training it is post-norm
}


def tagger(norm: Norm, part: type[NoResidual] | None, depth: int, size: Size, seed: int) -> Tagger:
    """Build an encoder of so many layers, with another part in place of the residual one."""
    model = fresh(
        EncoderTaggerConfig(
            vocabulary=FIRST + size.symbols,
            classes=size.symbols,
            dim=size.dim,
            layers=depth,
            heads=4,
            hidden=2 * size.dim,
            dropout=0.0,
            norm=norm,
        ),
        seed,
    )
    assert isinstance(model, Tagger)
    if part is not None:
        for block in blocks(model):
            block.around_attention = part(size.dim)
            block.around_feedforward = part(size.dim)
        model.to(next(model.parameters()).device)
    return model


def blocks(model: Tagger) -> list[EncoderBlock]:
    """List the layers, lowest first."""
    assert isinstance(model.context, AttentiveContext)
    return list(model.context.encoder.blocks)


def gradients(model: Tagger, texts: Asked) -> list[float]:
    """The norm of the loss's gradient by each layer's matrices, lowest first."""
    batch = texts.batch(texts.kept, epoch=0).to(next(model.parameters()).device)
    logits = model(batch.tokens, batch.scored)
    torch.nn.functional.cross_entropy(logits, batch.wanted).backward()
    norms = []
    for block in blocks(model):
        squares = [
            p.grad.square().sum() for p in block.parameters() if p.grad is not None and p.ndim > 1
        ]
        norms.append(torch.stack(squares).sum().sqrt().item())
    model.zero_grad(set_to_none=True)
    return norms


def measure(name: str, depth: int, size: Size, seed: int) -> Measured:
    """Look at the gradients of an untrained stack, then train it."""
    norm, part, warm = ARRANGEMENTS[name]
    config = training(
        TokenTrainConfig, size.steps, size.max_tokens, 2e-3, warmup=round(warm * size.steps)
    )
    draw = partial(looking_back, [size.length], symbols=size.symbols, back=[size.back], seed=seed)
    train, valid = draw(count=size.train, name="train"), draw(count=128, name="valid")
    model = tagger(norm, part, depth, size, seed)
    first = gradients(model, valid)
    learned = learn(model, asking(train, valid, config, seed=seed), config, seed=seed)
    return {
        "gradients": first,
        "loss": learned.loss,
        "accuracy": score(model, valid, BATCH)["accuracy"],
    }


def conclude(found: dict[str, dict[int, list[Measured]]]) -> str:
    """Say how the gradient changes from top to bottom of the deepest, and what learns."""
    deep = max(found["pre-norm"])
    lowest = {
        name: interval([f["gradients"][0] for f in each[deep]]).mean
        for name, each in found.items()
        if name != "post-norm, warm-up"  # before training the same as without
    }
    learned = {name: [f["accuracy"] for f in each[deep]] for name, each in found.items()}
    return (
        f"In {deep} layers before training, the gradient that reaches the lowest layer is "
        + ", ".join(f"{number(norm)} ({name})" for name, norm in lowest.items())
        + "; after equally many updates such a stack is right in "
        + ", ".join(f"{number(interval(right).mean)}% ({name})" for name, right in learned.items())
        + f" of the answers, most often with {leader(learned)}."
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
    layers = range(1, deep + 1)
    return Findings(
        conclude(found),
        [
            Table(
                "Right answers, %, by number of layers",
                ["arrangement", *map(str, size.depths)],
                [
                    [name, *(interval([f["accuracy"] for f in each[d]]) for d in size.depths)]
                    for name, each in found.items()
                ],
            ),
            *(
                Table(
                    f"Gradient of the {where} layer, before training",
                    ["arrangement", *map(str, size.depths)],
                    [
                        [
                            name,
                            *(interval([f["gradients"][n] for f in each[d]]) for d in size.depths),
                        ]
                        for name, each in found.items()
                    ],
                )
                for where, n in (("lowest", 0), ("top", -1))
            ),
        ],
        [
            Lines(
                f"Gradient of each of {deep} layers, before training",
                "layer (1 is the lowest)",
                "norm",
                [
                    Curve(
                        name,
                        [float(n) for n in layers],
                        [
                            interval([f["gradients"][n - 1] for f in each[deep]]).mean
                            for n in layers
                        ],
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
                [
                    Curve.of(
                        name,
                        size.depths,
                        [interval([f["accuracy"] for f in each[d]]) for d in size.depths],
                    )
                    for name, each in found.items()
                ],
                log_x=True,
            ),
        ],
    )


LAB = Lab(
    method=(
        "Encoders of the house's blocks, with the residual part exchanged: pre-norm, post-norm, "
        "the norm without the connection, and neither of the two. The gradient is that of the mean "
        "cross-entropy by all matrices of a layer, at the initial weights. Then each learns, in "
        "equally many updates at the same peak rate, to name at every token the one two places "
        "before. Without the connection there is always a warm-up."
    ),
    limits=(
        "One learning rate for all: each arrangement and depth would want its own, and longer "
        "warm-up can rescue post-norm at depths where this run cannot. A task that two layers "
        "solve shows what depth costs, not what it is good for."
    ),
    run=run,
)
