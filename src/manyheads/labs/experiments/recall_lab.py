"""T19: any two tokens are one step apart in attention, but many in a recurrent network."""

from collections.abc import Sequence
from functools import partial, reduce
from operator import or_

import torch
from torch import Tensor

from manyheads.labs import symbols
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import ByModel, Trials, by_size, over
from manyheads.labs.lab_training import fresh, parameters
from manyheads.lens.panels import number
from manyheads.models.tagger import Tagger, TaggerConfig


def models(size: Size) -> dict[str, TaggerConfig]:
    """A plain RNN, an LSTM and an encoder, with about the same number of parameters."""
    vocabulary = symbols.FIRST + size.symbols + 2
    return {
        "RNN": symbols.one_way("rnn", vocabulary, size.symbols, size.dim, 3 * size.dim),
        "LSTM": symbols.one_way("lstm", vocabulary, size.symbols, size.dim, 3 * size.dim // 2),
        "attention": symbols.encoder(vocabulary, size.symbols, size.dim),
    }


def gradient(model: Tagger, texts: symbols.Labelled) -> float:
    """The gradient norm of the target by the embedding of the symbol to remember."""
    batch = texts.batch(texts.kept, epoch=0)
    seen: list[Tensor] = []
    device = next(model.parameters()).device
    # cuDNN's recurrent kernels have gradients in training mode only; there is no dropout here.
    model.train()
    with model.embedding.register_forward_hook(lambda *call: seen.append(call[-1])):
        logits = model(batch.tokens.to(device), batch.scored.to(device))
    chosen = logits.log_softmax(dim=-1)[torch.arange(len(logits)), batch.targets.to(device)]
    (slope,) = torch.autograd.grad(chosen.sum(), seen)
    marked = batch.tokens == int(batch.tokens.max()) - 1  # the mark; the question is one above
    places = marked.roll(1, dims=1).to(device)  # followed by the symbol to remember
    return slope[places].norm(dim=-1).mean().item()


def measure(
    name: str, size: Size, distances: Sequence[int], steps: int, alike: str, seed: int
) -> Measured:
    """Train one model on texts of these distances, and measure at each."""
    train = symbols.delayed_recall(distances, size.train, size.symbols, seed=seed, name=alike)
    tests = {
        n: symbols.delayed_recall([n], size.texts, size.symbols, seed=seed, name=f"{n}")
        for n in distances
    }
    model = fresh(models(size)[name], seed)
    measured: Measured = {"parameters": parameters(model)}
    first = {distance: gradient(model, texts) for distance, texts in tests.items()}
    how = {"steps": steps, "max_tokens": size.max_tokens}
    symbols.learn_labels(model, train, tests[distances[0]], 2e-3, seed=seed, **how)
    for distance, texts in tests.items():
        measured[str(distance)] = {
            "accuracy": symbols.accuracy(model, texts),
            "gradient at first": first[distance],
        }
    return measured


def reach(each: Trials, distances: Sequence[int], chance: float) -> int:
    """Return the longest distance that is remembered; 0 if there is none.

    Remembered: mean accuracy at least halfway between chance and 100%.
    """
    enough = (100 + chance) / 2
    fine = (n for n in distances if over(each, str(n), "accuracy").mean >= enough)
    return max(fine, default=0)


def conclude(measured: ByModel, alone: ByModel, size: Size) -> str:
    """Conclude how far each model remembers, and how gradients fade."""
    chance = 100 / size.symbols
    near, far = min(size.distances), max(size.distances)

    def reaches(trials: ByModel, distances: Sequence[int]) -> str:
        reached = {name: reach(each, distances, chance) for name, each in trials.items()}
        most = {0: "none", max(distances): f"{max(distances)}, the longest tried"}
        return ", ".join(f"{name} over {most.get(n, n)}" for name, n in reached.items())

    fades = {
        name: over(trials, str(far), "gradient at first").mean
        / max(over(trials, str(near), "gradient at first").mean, 1e-30)
        for name, trials in measured.items()
    }
    return (
        f"Taught with one distance alone, of {', '.join(map(str, size.alone))} symbols, models "
        f"remember at the most: {reaches(alone, size.alone)}; taught with all distances from "
        f"{near} to {far} together: {reaches(measured, size.distances)}; before training, the "
        f"gradient over {far} symbols is "
        + ", ".join(f"{number(share)} ({name})" for name, share in fades.items())
        + f" of that over {near}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Train each model with each seed on all distances together, and on single ones."""
    names = list(models(size))
    measured = bench.seeded("{}", names, measure, size, size.distances, size.steps, "train")
    alone: dict[str, list[Measured]] = {}
    for name in names:
        single = [
            bench.each_seed(
                f"{name}, {n} alone",
                partial(measure, name, size, [n], size.alone_steps, f"train {n}"),
            )
            for n in size.alone
        ]
        # The trials of one seed as one, as where all distances are learned together.
        alone[name] = [reduce(or_, trials) for trials in zip(*single, strict=True)]
    return conclude(measured, alone, size), {
        "together": by_size(measured, size.distances),
        "apart": by_size(alone, size.alone),
        "guessing": number(100 / size.symbols),
    }
