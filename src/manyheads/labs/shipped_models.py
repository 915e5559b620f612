"""Shipped models and held-out inputs for experiments that look inside."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.pixels import Pixels
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
    return [(best.text, best.tokens) for best, *_ in translator(name).translate(texts, beams=1)]


@lru_cache(maxsize=8)
def translated(name: str, count: int, root: str | None) -> list[tuple[Tensor, Tensor]]:
    """Translate validation sentences greedily; those without an answer are left out.

    Returns:
        Tokens (1, token) of each source, with the end, and of its translation, with start and end.
    """
    both = pairs(name, "valid", count, root)
    answers = greedy(name, [source for source, _ in both])
    return [
        teacher_forcing(translator(name), source, tokens)
        for (source, _), (_, tokens) in zip(both, answers, strict=True)
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
