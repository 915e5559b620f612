"""The explicit key/value cache: an argument and a result of every decoding step."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.shapes import Kept, PerBeam


class KeyValue(NamedTuple):
    """The keys and values of one source, split into heads: computed once, read by every query."""

    k: Float[Tensor, "batch head key size"]
    v: Float[Tensor, "batch head key size"]
    grid: TokenGrid | None = None  # positions of the keys in an image, for a recorder

    def contiguous(self) -> "KeyValue":
        """Store each head's keys and values together, as every decoding step reads them."""
        return KeyValue(self.k.contiguous(), self.v.contiguous(), self.grid)

    def select(self, sentences: Kept) -> "KeyValue":
        """Keep these sentences."""
        return KeyValue(self.k[sentences], self.v[sentences], self.grid)


@dataclass(frozen=True, slots=True)
class KeyValueCache:
    """Keys and values of the tokens so far, in storage allocated ahead of need.

    The storage is written in place and handed on, so a cache that has been appended to must not be
    used again: keep the returned one.
    """

    key_storage: Float[Tensor, "row head capacity size"]
    value_storage: Float[Tensor, "row head capacity size"]
    length: int = 0

    @classmethod
    def empty(
        cls, rows: int, heads: int, capacity: int, size: int, like: Tensor
    ) -> "KeyValueCache":
        """Allocate an empty cache with the type and device of `like`."""
        shape = (rows, heads, capacity, size)
        return cls(like.new_empty(shape), like.new_empty(shape))

    @property
    def keys(self) -> Float[Tensor, "row head key size"]:
        """The keys of all tokens so far."""
        return self.key_storage[:, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "row head key size"]:
        """The values of all tokens so far."""
        return self.value_storage[:, :, : self.length]

    def append(
        self, k: Float[Tensor, "row head new size"], v: Float[Tensor, "row head new size"]
    ) -> "KeyValueCache":
        """Write new keys and values behind the old ones; storage doubles when it is full."""
        length = self.length + k.shape[2]
        grown = self
        if length > self.key_storage.shape[2]:
            grown = KeyValueCache(
                torch.cat((self.key_storage, torch.empty_like(self.key_storage)), dim=2),
                torch.cat((self.value_storage, torch.empty_like(self.value_storage)), dim=2),
            )
        grown.key_storage[:, :, self.length : length] = k
        grown.value_storage[:, :, self.length : length] = v
        return KeyValueCache(grown.key_storage, grown.value_storage, length)

    def select(self, rows: Kept) -> "KeyValueCache":
        """Keep these rows, in this order; a row may be taken more than once."""
        keys = _select(self.key_storage, rows, self.length)
        return KeyValueCache(keys, _select(self.value_storage, rows, self.length), self.length)


def rows_of_beams(beams: PerBeam) -> Int[Tensor, " row"]:
    """Find the rows of beams that are named sentence by sentence: a row is (sentence, beam)."""
    count, width = beams.shape
    return (torch.arange(count, device=beams.device)[:, None] * width + beams).flatten()


def rows_of_sentences(sentences: Kept, beams: int) -> Int[Tensor, " row"]:
    """Find the rows of sentences with so many beams each."""
    return (sentences[:, None] * beams + torch.arange(beams, device=sentences.device)).flatten()


def _select(storage: Tensor, rows: Tensor, length: int) -> Tensor:
    """Copy rows, and of them only what has been written."""
    if storage.requires_grad and torch.is_grad_enabled():  # which the faster way below has not
        return storage.index_select(0, rows)
    chosen = storage.new_empty((len(rows), *storage.shape[1:]))
    # Several times faster than indexing with a tensor, which reads value by value.
    torch.index_select(storage[:, :, :length], 0, rows, out=chosen[:, :, :length])
    return chosen
