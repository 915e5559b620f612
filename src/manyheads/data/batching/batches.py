"""Batches of training examples as plain dataclasses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """The tensors of some examples."""

    def to(self, device: torch.device) -> Self:
        """Move the tensors to a device."""
        tensors = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **tensors)


@dataclass(frozen=True)
class TextBatch(Batch):
    """Token ids of sentence pairs, padded; a target is start token, sentence, end token."""

    source: Tensor  # (sentence, source token)
    target: Tensor  # (sentence, target token)
    indices: np.ndarray
    units: int  # tokens of both sides, without padding


@dataclass(frozen=True)
class TokenBatch(Batch):
    """Padded texts, with a target for some of their tokens."""

    tokens: Tensor  # (text, token)
    scored: Tensor  # (text, token): True where a token has a target
    targets: Tensor  # (scored tokens,): the targets, row by row
    indices: np.ndarray
    units: int  # tokens, without padding


@dataclass(frozen=True)
class ImageBatch(Batch):
    """Normalised images and their classes."""

    images: Tensor  # (image, channel, height, width)
    labels: Tensor  # (image,), or shares of the classes: (image, class)
    indices: np.ndarray

    @property
    def units(self) -> int:
        """The number of images."""
        return len(self.indices)


@dataclass(frozen=True)
class CaptionBatch(Batch):
    """Normalised images and token ids of all their captions, padded.

    A target is start token, language token, caption, end token.
    """

    images: Tensor  # (image, channel, height, width)
    target: Tensor  # (caption, token)
    owners: Tensor  # (caption,): the image of each
    indices: np.ndarray  # of the images

    @property
    def units(self) -> int:
        """The number of images."""
        return len(self.indices)


@dataclass(frozen=True)
class MatchBatch(Batch):
    """Normalised images, and texts of theirs."""

    images: Tensor  # (image, channel, height, width)
    tokens: Tensor  # (text, token), each with its end, padded
    positives: Tensor  # (image, text): True where they belong together
    indices: np.ndarray  # of the images

    @property
    def units(self) -> int:
        """The number of images."""
        return len(self.indices)


def pad(sequences: Sequence[Sequence[int]], padding: int) -> Tensor:
    """Stack sequences of different lengths, padded on the right: (sequence, longest)."""
    longest = max(map(len, sequences))
    table = np.full((len(sequences), longest), padding, dtype=np.int64)
    for row, sequence in zip(table, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(table)
