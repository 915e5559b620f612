"""T19: any two words are one step apart for attention; a recurrent network carries them along."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from manyheads.lab.bench import Bench, Lab, Measured, Scale
from manyheads.lab.findings import Findings, curves, interval, table, verdict
from manyheads.lab.learn import fresh, learn
from manyheads.lab.symbols import BATCH, FIRST, Asked, asking, keeping
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
    train: int = 20000
    symbols: int = 8
    dim: int = 40
    max_tokens: int = 4096


SIZES: dict[Scale, Size] = {
    "full": Size(steps=3000, distances=(1, 2, 4, 8, 16, 32, 64, 128), texts=256),
    "quick": Size(steps=60, distances=(1, 4, 16), texts=32, train=2000, max_tokens=1024),
    "smoke": Size(steps=2, distances=(1, 4), texts=4, train=20, symbols=3, dim=8, max_tokens=64),
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


def measure(name: str, size: Size, seed: int) -> Measured:
    """Train one model on all distances, and ask at each."""
    config = TokenTrainConfig(
        steps=size.steps,
        max_tokens=size.max_tokens,
        learning_rate=2e-3,
        warmup=max(size.steps // 10, 1),
        validate_every=size.steps,
        save_every=size.steps,
        log_every=max(size.steps // 10, 1),
    )
    train = keeping(size.distances, size.train, size.symbols, seed=seed, name="train")
    asked = {
        distance: keeping([distance], size.texts, size.symbols, seed=seed, name=f"{distance}")
        for distance in size.distances
    }
    model = fresh(models(size)[name], seed)
    found: Measured = {"parameters": sum(p.numel() for p in model.parameters())}
    first = {distance: gradient(model, texts) for distance, texts in asked.items()}
    learn(model, asking(train, asked[size.distances[0]], config, seed=seed), config, seed=seed)
    for distance, texts in asked.items():
        found[str(distance)] = {
            "accuracy": score(model, texts, BATCH)["accuracy"],
            "gradient at first": first[distance],
        }
    return found


def conclude(found: dict[str, list[Measured]], size: Size) -> str:
    """Say how far each remembers, and how gradients fade."""
    chance = 100 / size.symbols
    near, far = min(size.distances), max(size.distances)
    reach = {}
    for name, each in found.items():
        fine = [
            n
            for n in size.distances
            if interval([f[str(n)]["accuracy"] for f in each]).mean >= (100 + chance) / 2
        ]
        reach[name] = max(fine, default=0)

    def of(name: str, what: str, distance: int) -> list[float]:
        return [each[str(distance)][what] for each in found[name]]

    apart = verdict(of("attention", "accuracy", far), of("LSTM", "accuracy", far))
    compared = {1: "more often than", -1: "less often than", 0: "not surely more often than"}
    fades = {
        name: interval(of(name, "gradient at first", far)).mean
        / max(interval(of(name, "gradient at first", near)).mean, 1e-30)
        for name in found
    }
    return (
        "Halfway between guessing and certainty or better, "
        + ", ".join(
            f"{name} remembers over {n} symbols" if n else f"{name} remembers over none"
            for name, n in reach.items()
        )
        + f"; at {far} attention is right {compared[apart]} the LSTM "
        f"({number(interval(of('attention', 'accuracy', far)).mean)}% against "
        f"{number(interval(of('LSTM', 'accuracy', far)).mean)}%, guessing {number(chance)}%); "
        f"before training, the gradient over {far} symbols is "
        + ", ".join(f"{number(share)} ({name})" for name, share in fades.items())
        + f" of that over {near}."
    )


def run(bench: Bench) -> Findings:
    """Train each model with each seed."""
    size = bench.choose(SIZES)
    found = {name: bench.each_seed(name, partial(measure, name, size)) for name in models(size)}

    return Findings(
        conclude(found, size),
        [
            table("Right answers, %, by distance", found, size.distances, "accuracy"),
            table(
                "Gradient by the symbol to keep, before training",
                found,
                size.distances,
                "gradient at first",
            ),
        ],
        [
            Lines(
                f"Right answers ({number(100 / size.symbols)}% by guessing)",
                "symbols in between",
                "%",
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
        "learn from the same texts of all distances, and are asked at each. The gradient is that "
        "of the right answer's log-probability by the embedding of the symbol to keep, of the "
        "untrained models."
    ),
    limits=(
        "One symbol among noise is the simplest memory there is. Distances end where attention's "
        "squared cost would begin to matter, and gated cells with other initial biases, or trained "
        "longer, reach further than here."
    ),
    run=run,
)
