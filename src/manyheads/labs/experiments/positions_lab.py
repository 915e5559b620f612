"""T8, E1: why positions are sinusoids, their effect on a model, and extrapolation in length."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import ByModel, over
from manyheads.labs.lab_training import fresh
from manyheads.labs.symbols import FIRST, accuracy, encoder, learn_labels, looking_back, widths
from manyheads.lens.panels import number
from manyheads.models.causal_lm import CausalConfig
from manyheads.models.components import TokenPositions
from manyheads.models.model_config import ModelConfig
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.layers.positions import sinusoids

NOT = (
    "Although I did not get 95 in last TOEFL , I could get in the Ph.D program .",
    "Although I did get 95 in last TOEFL , I could not get in the Ph.D program .",
)
KINDS: tuple[TokenPositions, ...] = ("none", "sinusoidal", "learned", "rotary")


def wavelengths(dim: int) -> list[float]:
    """Compute each pair's wavelength: its angle at position 1 is 2 pi / wavelength."""
    first = sinusoids(2, dim)[1].double()
    return [
        2 * math.pi / math.atan2(sine, cosine)
        for sine, cosine in zip(first[0::2].tolist(), first[1::2].tolist(), strict=True)
    ]


def schemes() -> dict[str, dict[str, float]]:
    """Three ways to number tokens: their values, and the effect of another length."""
    columns = (
        "value at 10 of 20",
        "largest up to 1,000 of 1,000",
        "change of token 10, 20 to 40 tokens",
    )
    table = sinusoids(1001, 64)
    moved = sinusoids(20, 64)[10] - sinusoids(40, 64)[10]
    largest = [each.abs().max().item() for each in (table[10], table, moved)]
    return {
        "position": dict(zip(columns, (10, 1000, 0.0), strict=True)),
        "position / length": dict(zip(columns, (10 / 20, 1, abs(10 / 20 - 10 / 40)), strict=True)),
        "sinusoids": dict(zip(columns, largest, strict=True)),
    }


def sentences() -> tuple[Tensor, Tensor]:
    """Two sentences that differ only in the position of "not", as token ids."""
    words = sorted(set(NOT[0].split()))
    first, second = ([FIRST + words.index(word) for word in text.split()] for text in NOT)
    return torch.tensor([first]), torch.tensor([second])


def apart(a: Tensor, b: Tensor) -> float:
    """Relative distance of two sets of vectors (token, dim).

    The largest distance from a vector of one to the nearest of the other: 0 for equal sets.
    """
    between = torch.cdist(a.double(), b.double(), compute_mode="donot_use_mm_for_euclid_dist")
    far = torch.maximum(between.amin(dim=1).max(), between.amin(dim=0).max())
    return (far / a.double().norm(dim=-1).mean()).item()


@torch.inference_mode()
def pair(kind: TokenPositions, causal: bool, dim: int, seed: int) -> Measured:
    """Encode both sentences with an untrained model; compare the sets of vectors."""
    a, b = sentences()
    model = fresh(config(kind, causal, symbols=int(a.max()) + 1 - FIRST, dim=dim, longest=32), seed)
    model.eval()
    return {"apart": apart(*(_vectors(model, causal, each) for each in (a, b)))}


def _vectors(model: Any, causal: bool, tokens: Tensor) -> Tensor:
    tokens = tokens.to(next(model.parameters()).device)
    if causal:
        encoded = model.encoder(model.embed(tokens), causal_mask(tokens.shape[1], tokens.device))
    else:
        encoded = model.context(model.embedding(tokens) * model.scale, tokens != 0)
    return encoded[0].cpu()


def config(kind: TokenPositions, causal: bool, symbols: int, dim: int, longest: int) -> ModelConfig:
    """An encoder, optionally causal; `longest` is the number of learned positions."""
    vocabulary = FIRST + symbols
    if causal:
        sizes = widths(vocabulary, dim)
        return CausalConfig(layers=2, positions=kind, max_length=longest, **sizes)
    return replace(encoder(vocabulary, vocabulary, dim), positions=kind, max_length=longest)


def measure(kind: TokenPositions, causal: bool, size: Size, seed: int) -> Measured:
    """Train to predict the token two positions before on short texts; measure on longer ones."""
    lengths = range(size.back + 2, size.longest + 1)
    back = [size.back]
    train = looking_back(lengths, size.train, size.symbols, back, seed=seed, name="train")
    tests = {
        n: looking_back([n], size.texts, size.symbols, back, seed=seed, name=f"{n}")
        for n in size.lengths
    }
    # Learned positions beyond the training length exist, but are untrained.
    model = fresh(
        config(kind, causal, symbols=size.symbols, dim=size.dim, longest=max(size.lengths)), seed
    )
    how = {"steps": size.steps, "max_tokens": size.max_tokens}
    learn_labels(model, train, tests[size.lengths[0]], 3e-3, seed=seed, **how)
    return {str(n): accuracy(model, texts) for n, texts in tests.items()}


def name_of(kind: str, causal: bool) -> str:
    """Return the name of a model in the tables."""
    return f"{kind}{', causal mask' if causal else ''}"


def conclude(waves: list[float], pairs: ByModel, measured: ByModel, size: Size) -> str:
    """Conclude on wavelengths, the position of "not", and extrapolation."""
    rises = all(a < b for a, b in pairwise(waves))
    blind = [name for name, each in pairs.items() if max(f["apart"] for f in each) < 1e-4]
    far, near = max(size.lengths), size.longest

    def at(name: str, length: int) -> float:
        return over(measured[name], str(length)).mean

    keeps = [name for name in measured if at(name, far) > at(name, near) - 5]
    falls = [name for name in measured if name not in keeps]

    def listed(names: list[str]) -> str:
        known = [f'"{n}" ({number(at(n, near))}% → {number(at(n, far))}%)' for n in names]
        return "; ".join(known) or "no kind"

    alike = " and ".join(f'"{name}"' for name in blind) or "no kind"
    return (
        f"The first dimensions turn {'fastest' if rises else 'not fastest'} (wavelength "
        f"{number(waves[0])}, the last {number(waves[-1])}); the two sentences with 'not' are the "
        f"same set of vectors with {alike}; from {near} tokens, the longest in training, to {far}, "
        f"right answers fall by more than 5 points with {listed(falls)}"
        f"{f', and not with {listed(keeps)}' if keeps else ''}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Compute wavelengths, compare the sentences, and train each kind of position."""
    waves = bench.trial("wavelengths", lambda: {"waves": wavelengths(64)})["waves"]
    kinds = {name_of(k, causal): (k, causal) for causal in (False, True) for k in KINDS}
    pairs = bench.seeded("not, {}", kinds, lambda name, seed: pair(*kinds[name], 64, seed))
    measured = bench.seeded("{}", kinds, lambda name, seed: measure(*kinds[name], size, seed))
    table = sinusoids(129, 64)
    right = {
        name: {n: over(trials, str(n)) for n in size.lengths} for name, trials in measured.items()
    }
    return conclude(waves, pairs, measured, size), {
        "schemes": schemes(),
        "measured": {
            name: {'"not" pair apart': over(pairs[name], "apart")}
            | {f"{n} tokens": share for n, share in each.items()}
            for name, each in right.items()
        },
        "waves": {"wavelength": dict(enumerate(waves))},
        "similarity": {"sinusoids": dict(enumerate((table[0] @ table.T / 32).tolist()))},
        "both_ways": {kind: right[name_of(kind, False)] for kind in KINDS},
        "causal": {kind: right[name_of(kind, True)] for kind in KINDS},
    }
