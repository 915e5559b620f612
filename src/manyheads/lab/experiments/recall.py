"""T19: any two words are one step apart for attention; a recurrent network carries them along."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from manyheads.lab.bench import Bench, Lab, Measured, Scale
from manyheads.lab.findings import Findings, Trials, curves, interval, table
from manyheads.lab.learn import fresh, learn
from manyheads.lab.symbols import BATCH, FIRST, Asked, asking, keeping, training
from manyheads.lens.panels import Lines, number
from manyheads.models.presets import Config
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig, Tagger
from manyheads.tasks.tokenwise import TokenTrainConfig
from manyheads.tasks.tokenwise import measure as score


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is learned and measured."""

    steps: int
    distances: tuple[int, ...]
    texts: int  # a distance, when measuring
    alone: tuple[int, ...]  # distances that are also learned with no others beside them
    alone_steps: int
    train: int = 20000
    symbols: int = 8
    dim: int = 40
    max_tokens: int = 4096


SIZES: dict[Scale, Size] = {
    "full": Size(
        steps=3000,
        distances=(1, 2, 4, 8, 16, 32, 64, 128),
        texts=256,
        alone=(8, 16, 32, 64, 128),
        alone_steps=1000,
    ),
    "quick": Size(
        steps=60,
        distances=(1, 4, 16),
        texts=32,
        alone=(4, 16),
        alone_steps=60,
        train=2000,
        max_tokens=1024,
    ),
    "smoke": Size(
        steps=2,
        distances=(1, 4),
        texts=4,
        alone=(4,),
        alone_steps=2,
        train=20,
        symbols=3,
        dim=8,
        max_tokens=64,
    ),
}


def models(size: Size) -> dict[str, Config]:
    """A plain RNN, an LSTM and an encoder stack, of about as many parameters."""
    vocabulary = FIRST + size.symbols + 2
    return {
        "RNN": RecurrentTaggerConfig(
            vocabulary=vocabulary,
            classes=size.symbols,
            cell="rnn",
            dim=size.dim,
            hidden=3 * size.dim,
            bidirectional=False,
            dropout=0.0,
        ),
        "LSTM": RecurrentTaggerConfig(
            vocabulary=vocabulary,
            classes=size.symbols,
            cell="lstm",
            dim=size.dim,
            hidden=3 * size.dim // 2,
            bidirectional=False,
            dropout=0.0,
        ),
        "attention": EncoderTaggerConfig(
            vocabulary=vocabulary,
            classes=size.symbols,
            dim=size.dim,
            layers=2,
            heads=4,
            hidden=2 * size.dim,
            dropout=0.0,
        ),
    }


def gradient(model: torch.nn.Module, texts: Asked) -> float:
    """How much the answer feels the symbol to keep: the norm of its gradient by that embedding."""
    assert isinstance(model, Tagger)
    batch = texts.batch(texts.kept, epoch=0)
    seen: list[Tensor] = []

    def keep(_module: torch.nn.Module, _given: object, vectors: Tensor) -> None:
        vectors.retain_grad()
        seen.append(vectors)

    hook = model.embedding.register_forward_hook(keep)
    device = next(model.parameters()).device
    # cuDNN's recurrent kernels have gradients in training mode only; there is no dropout here.
    model.train()
    logits = model(batch.tokens.to(device), batch.scored.to(device))
    logits.log_softmax(dim=-1)[torch.arange(len(logits)), batch.wanted.to(device)].sum().backward()
    hook.remove()
    model.zero_grad(set_to_none=True)
    marked = batch.tokens == int(batch.tokens.max()) - 1  # the mark; the question is one above
    places = marked.roll(1, dims=1).to(device)  # the symbol to keep stands behind it
    (vectors,) = seen
    assert vectors.grad is not None
    return vectors.grad[places].norm(dim=-1).mean().item()


def measure(
    name: str, size: Size, distances: Sequence[int], steps: int, alike: str, seed: int
) -> Measured:
    """Train one model on texts of these distances, and ask at each."""
    config = training(TokenTrainConfig, steps, size.max_tokens, 2e-3)
    train = keeping(distances, size.train, size.symbols, seed=seed, name=alike)
    asked = {
        distance: keeping([distance], size.texts, size.symbols, seed=seed, name=f"{distance}")
        for distance in distances
    }
    model = fresh(models(size)[name], seed)
    found: Measured = {"parameters": sum(p.numel() for p in model.parameters())}
    first = {distance: gradient(model, texts) for distance, texts in asked.items()}
    learn(model, asking(train, asked[distances[0]], config, seed=seed), config, seed=seed)
    for distance, texts in asked.items():
        found[str(distance)] = {
            "accuracy": score(model, texts, BATCH)["accuracy"],
            "gradient at first": first[distance],
        }
    return found


def reach(each: Sequence[Mapping[str, Any]], distances: Sequence[int], chance: float) -> int:
    """Find the longest distance that is remembered; 0 if none is.

    Remembered means: right in the mean at least halfway between guessing and always.
    """
    fine = [
        n
        for n in distances
        if interval([f[str(n)]["accuracy"] for f in each]).mean >= (100 + chance) / 2
    ]
    return max(fine, default=0)


def conclude(found: Trials, alone: Trials, size: Size) -> str:
    """Say how far each remembers, and how gradients fade."""
    chance = 100 / size.symbols
    near, far = min(size.distances), max(size.distances)

    def reaches(trials: Trials, distances: Sequence[int]) -> str:
        return ", ".join(
            f"{name} over {reach(each, distances, chance) or 'none'}"
            for name, each in trials.items()
        )

    fades = {
        name: interval([each[str(far)]["gradient at first"] for each in trials]).mean
        / max(interval([each[str(near)]["gradient at first"] for each in trials]).mean, 1e-30)
        for name, trials in found.items()
    }
    return (
        f"Taught with one distance alone, of {', '.join(map(str, size.alone))} symbols, models "
        f"remember at the most: {reaches(alone, size.alone)}; taught with all distances from "
        f"{near} to {far} together: {reaches(found, size.distances)}; before training, the "
        f"gradient over {far} symbols is "
        + ", ".join(f"{number(share)} ({name})" for name, share in fades.items())
        + f" of that over {near}."
    )


def run(bench: Bench) -> Findings:
    """Train each model with each seed on all distances, and on single ones."""
    size = bench.choose(SIZES)
    names = list(models(size))
    found = {
        name: bench.each_seed(
            name, partial(measure, name, size, size.distances, size.steps, "train")
        )
        for name in names
    }
    single = {
        (name, distance): bench.each_seed(
            f"{name}, {distance} alone",
            partial(measure, name, size, [distance], size.alone_steps, f"train {distance}"),
        )
        for name in names
        for distance in size.alone
    }
    alone = {  # the trials of one seed as one, as where all distances are learned together
        name: [
            {key: value for trial in trials for key, value in trial.items()}
            for trials in zip(*(single[name, distance] for distance in size.alone), strict=True)
        ]
        for name in names
    }
    guessing = number(100 / size.symbols)
    return Findings(
        conclude(found, alone, size),
        [
            table("Right answers, %, one distance learned alone", alone, size.alone, "accuracy"),
            table(
                "Right answers, %, all distances learned together",
                found,
                size.distances,
                "accuracy",
            ),
            table(
                "Gradient by the symbol to keep, before training",
                found,
                size.distances,
                "gradient at first",
            ),
        ],
        [
            Lines(
                f"One distance learned alone ({guessing}% by guessing)",
                "symbols in between",
                "right, %",
                curves(alone, size.alone, "accuracy"),
                log_x=True,
            ),
            Lines(
                "All distances learned together",
                "symbols in between",
                "right, %",
                curves(found, size.distances, "accuracy"),
                log_x=True,
            ),
            Lines(
                "Gradient by the symbol to keep, before training",
                "symbols in between",
                "norm",
                curves(found, size.distances, "gradient at first"),
                log_x=True,
                log_y=True,
            ),
        ],
    )


LAB = Lab(
    method=(
        "A text is random symbols; one stands behind a mark, and at the end it is asked for. "
        "One-way recurrent taggers and an encoder of two layers, of about as many parameters, "
        "learn it twice: from texts of one distance alone, and, in three times as many updates, "
        "from texts of all distances together. A distance is remembered if answers are right, in "
        "the mean of the seeds, at least halfway between guessing and always. The gradient is that "
        "of the right answer's log-probability by the embedding of the symbol to keep, of the "
        "untrained models."
    ),
    limits=(
        "One symbol among noise is the simplest memory there is, and one learning rate and one "
        "number of updates were tried: gated cells with other initial biases, or trained longer, "
        "reach further. Distances end where attention's squared cost would begin to matter."
    ),
    run=run,
)
