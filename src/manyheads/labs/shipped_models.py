"""Shipped models and held-out inputs for experiments that look inside; intervals over inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.pixels import Pixels
from manyheads.lens.panels import Interval
from manyheads.models.transformer import Transformer
from manyheads.predict.image_inputs import ImagePredictor
from manyheads.predict.load import load
from manyheads.recipe_data.caption_data import CaptionRecipe
from manyheads.recipe_data.caption_splits import captioned_splits
from manyheads.recipe_data.image_splits import image_split
from manyheads.recipe_data.pair_splits import corpus_split
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.tasks.translate.reference import teacher_forcing

HOLDS, PART, FAILS = "holds", "holds in part", "does not hold at this size"
SAMPLES, SEED = 1000, 12345
Ratio = tuple[Sequence[float], Sequence[float] | None]  # for each input; None: ones


@dataclass(frozen=True, eq=False)
class Translated:
    """A sentence pair, and the model's own greedy translation."""

    text: str
    reference: str
    source: Tensor  # (1, token), the end included
    target: Tensor  # (1, token), with start and end


@lru_cache
def translator(name: str) -> Translator:
    """Load a shipped translator."""
    return cast("Translator", load(name, device="cpu"))


def network(name: str) -> Transformer:
    """Load the model of a shipped translator."""
    return cast("Transformer", translator(name).model)


@lru_cache(maxsize=8)
def pairs(name: str, split: str, count: int, root: str | None) -> list[tuple[str, str]]:
    """Take pairs from all over a split that the model's recipe names.

    Raises:
        NotFoundError: the data are not under the root.
    """
    recipe = cast("TranslateRecipe", translator(name).folder.recipe)
    data = recipe.data if root is None else recipe.data.model_copy(update={"root": root})
    corpus = corpus_split(split, data)
    return [(corpus.source[n], corpus.target[n]) for n in evenly_spaced(len(corpus), count)]


def greedy(name: str, texts: list[str]) -> list[tuple[str, Sequence[int]]]:
    """Translate texts greedily: text and tokens of each."""
    found = translator(name).translate(texts, beams=1)
    return [(best.text, best.tokens) for best, *_ in found]


@lru_cache(maxsize=8)
def translated(name: str, count: int, root: str | None) -> list[Translated]:
    """Translate validation sentences; those without an answer are left out."""
    both = pairs(name, "valid", count, root)
    answers = greedy(name, [source for source, _ in both])
    return [
        Translated(source, reference, *teacher_forcing(translator(name), source, tokens))
        for (source, reference), (_, tokens) in zip(both, answers, strict=True)
        if tokens
    ]


@lru_cache
def image_model(name: str) -> Any:
    """Load a shipped classifier, or the image encoder of a shipped matcher."""
    model = load(name, device="cpu").model
    return getattr(model, "images", model)


@lru_cache(maxsize=4)
def images(name: str, count: int, root: str | None) -> tuple[Tensor, Tensor]:
    """Take validation images of a model from all over: normalised pixels, and labels.

    Raises:
        NotFoundError: the data are not under the root.
    """
    loaded = load(name, device="cpu")
    recipe: Any = loaded.folder.recipe
    preprocessing = cast("ImagePredictor", loaded).preprocessing
    data = recipe.data if root is None else recipe.data.model_copy(update={"root": root})
    recipe = recipe.model_copy(update={"data": data})
    captioned = isinstance(recipe, CaptionRecipe)
    held = captioned_splits(recipe)[1].images if captioned else image_split("valid", recipe)
    chosen = held.select(evenly_spaced(len(held), count))
    pixels = Pixels(chosen, preprocessing)[np.arange(len(chosen))]
    return preprocessing.normalise(pixels), torch.from_numpy(chosen.labels.copy())


def resampled(one: Ratio, other: Ratio | None = None) -> Interval:
    """Divide sums over inputs; the interval draws inputs with replacement (Koehn 2004).

    With `other`, that ratio is subtracted, of the same inputs in every draw.

    Examples:
        >>> resampled(([1.0, 3.0], None)).mean, resampled(([1.0, 3.0], [2.0, 2.0])).mean
        (2.0, 1.0)
    """
    draws = np.random.default_rng(SEED).multinomial(
        len(one[0]), np.full(len(one[0]), 1 / len(one[0])), size=SAMPLES
    )
    draws = np.vstack([np.ones(len(one[0]), dtype=int), draws])  # the first is the whole sample

    def ratios(values: Sequence[float], counts: Sequence[float] | None) -> np.ndarray:
        below = np.ones(len(values)) if counts is None else np.array(counts, dtype=float)
        found: np.ndarray = (draws @ np.array(values, dtype=float)) / (draws @ below).clip(1e-9)
        return found

    found = ratios(*one) - (ratios(*other) if other is not None else 0.0)
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return Interval(float(found[0]), float(low), float(high))


def surely(difference: Interval) -> int:
    """Return the sign of an interval that does not contain zero, else 0."""
    low, high = difference.low or 0.0, difference.high or 0.0
    return 1 if low > 0 else -1 if high < 0 else 0


def judged(*parts: bool) -> str:
    """Return the verdict on a claim with several parts: all, some or none of them are so."""
    return HOLDS if all(parts) else PART if any(parts) else FAILS


def counted(verdicts: Sequence[str]) -> str:
    """Count verdicts in words, such as "holds in 1, does not hold at this size in 2"."""
    return ", ".join(
        f"{name} in {verdicts.count(name)}" for name in (HOLDS, PART, FAILS) if name in verdicts
    )
