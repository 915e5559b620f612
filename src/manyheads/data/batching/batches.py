"""Batches of training examples as plain dataclasses."""

from collections.abc import Callable, Iterable, Iterator, Sequence
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
class PerImage(Batch):
    """Normalised images, and what belongs to them."""

    images: Tensor  # (image, channel, height, width)

    @property
    def units(self) -> int:
        """The number of images."""
        return len(self.images)


@dataclass(frozen=True)
class ImageBatch(PerImage):
    """Normalised images and their classes."""

    labels: Tensor  # (image,), or shares of the classes: (image, class)
    indices: np.ndarray


@dataclass(frozen=True)
class CaptionBatch(PerImage):
    """Normalised images and token ids of all their captions, padded.

    A target is start token, language token, caption, end token.
    """

    target: Tensor  # (caption, token)
    owners: Tensor  # (caption,): the image of each
    indices: np.ndarray  # of the images


@dataclass(frozen=True)
class MatchBatch(PerImage):
    """Normalised images, and texts of theirs."""

    tokens: Tensor  # (text, token), each with its end, padded
    positives: Tensor  # (image, text): True where they belong together
    indices: np.ndarray  # of the images


def length_batches(
    numbers: Iterable[int], length: Callable[[int], int], size: int
) -> Iterator[list[int]]:
    """Batch examples, by their numbers: those of like length together, the shortest first."""
    order = sorted(numbers, key=length)
    return (order[first : first + size] for first in range(0, len(order), size))


def pad(sequences: Sequence[Sequence[int]], padding: int) -> Tensor:
    """Stack sequences of different lengths, padded on the right: (sequence, longest)."""
    table = np.full((len(sequences), max(map(len, sequences))), padding, dtype=np.int64)
    for row, sequence in zip(table, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(table)
