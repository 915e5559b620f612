"""Emoji with their names in five languages for experiments, and small models for them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from manyheads.data.augment.augment import Augmentation
from manyheads.data.checks.held_out_images import hold_out_captioned
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import Preprocessing
from manyheads.models.cct import CctConfig
from manyheads.recipe_data.caption_data import CaptionData
from manyheads.recipe_data.caption_splits import read_captioned

EMOJI = "emoji/noto72.parquet[split=train]"
LANGUAGES = ("en", "ko", "de", "fr", "ja")
MOVED = Augmentation(shift=2)


@lru_cache(maxsize=2)
def emoji(root: str | None, held: int) -> tuple[CaptionedImages, CaptionedImages]:
    """Read the training emoji with their names, split into training and validation.

    The test splits are not used: experiments are not final measurements.

    Raises:
        NotFoundError: the emoji are not under the data root.
    """
    names = {language: (f"name_{language}",) for language in LANGUAGES}
    images = read_captioned(EMOJI, CaptionData(root=root, train=EMOJI, texts=names))
    return hold_out_captioned(images, held, 0)


def in_languages(captions: CaptionedImages, languages: Sequence[str]) -> CaptionedImages:
    """Keep the captions in some languages, and all images."""
    kept = [n for n, each in enumerate(captions.languages) if each in languages]
    return replace(
        captions,
        owners=captions.owners[np.array(kept, dtype=int)],
        texts=[captions.texts[n] for n in kept],
        languages=[captions.languages[n] for n in kept],
    )


def first(captions: CaptionedImages, count: int) -> CaptionedImages:
    """Keep the first images."""
    return captions.select(np.arange(min(count, len(captions))))


def named(
    root: str | None, held: int, count: int, languages: Sequence[str]
) -> tuple[CaptionedImages, CaptionedImages]:
    """Return `count` training emoji with their names in some languages, and validation emoji."""
    learned, valid = (in_languages(each, languages) for each in emoji(root, held))
    return first(learned, count), valid


def small_encoder(side: int, dim: int, layers: int) -> CctConfig:
    """A convolutional Transformer for small images that a CPU trains in a minute or two."""
    stem = dict[str, Any](height=side, width=side, convolutions=2, stem=32)
    sizes = dict[str, Any](dim=dim, layers=layers, heads=max(dim // 32, 1), ffn_dim=2 * dim)
    return CctConfig(pool="mean", **stem, **sizes)


def text_widths(dim: int) -> dict[str, Any]:
    """The widths and dropout of a small Transformer of texts, of as many heads as the encoder."""
    return {"dim": dim, "heads": max(dim // 32, 1), "ffn_dim": 2 * dim, "dropout": 0.1}


def preprocessing(side: int) -> Preprocessing:
    """Resize emoji, which are square."""
    return Preprocessing(height=side, width=side)
