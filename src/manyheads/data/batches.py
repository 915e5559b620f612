"""Batches: what a model is fed, as plain dataclasses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Token ids of sentence pairs, padded; a target is start token, sentence, end token."""

    source: Tensor  # (sentence, source token)
    target: Tensor  # (sentence, target token)
    indices: np.ndarray
    units: int  # tokens of both sides, without padding

    def to(self, device: torch.device) -> "TextBatch":
        """Move the tensors to a device."""
        return TextBatch(self.source.to(device), self.target.to(device), self.indices, self.units)


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Texts, padded, and what there is to say about some of their tokens."""

    tokens: Tensor  # (text, token)
    scored: Tensor  # (text, token): where there is something to say
    wanted: Tensor  # (scored tokens,): the right answers, row by row
    indices: np.ndarray
    units: int  # tokens, without padding

    def to(self, device: torch.device) -> "TokenBatch":
        """Move the tensors to a device."""
        return TokenBatch(
            self.tokens.to(device),
            self.scored.to(device),
            self.wanted.to(device),
            self.indices,
            self.units,
        )


@dataclass(frozen=True, slots=True)
class ImageBatch:
    """Normalised images and their classes."""

    images: Tensor  # (image, channel, height, width)
    labels: Tensor  # (image,), or shares of the classes: (image, class)
    indices: np.ndarray

    @property
    def units(self) -> int:
        """The number of images."""
        return len(self.indices)

    def to(self, device: torch.device) -> "ImageBatch":
        """Move the tensors to a device."""
        return ImageBatch(self.images.to(device), self.labels.to(device), self.indices)


def pad(sequences: Sequence[Sequence[int]], padding: int) -> Tensor:
    """Stack sequences of different length, filled up on the right: (sequence, longest)."""
    longest = max(map(len, sequences))
    table = np.full((len(sequences), longest), padding, dtype=np.int64)
    for row, sequence in zip(table, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(table)
