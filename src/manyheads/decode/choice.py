"""The heart of a beam search: which continuations of a sentence's beams go on."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Choice(NamedTuple):
    """What becomes of the beams of each sentence."""

    complete: list[tuple[int, int]]  # (row, beam): these beams with an end token are outputs
    living: Int[Tensor, "sentence beam"]  # beam * vocabulary + token: these go on
    scores: Float[Tensor, "sentence beam"]  # their log-probabilities
    best: Float[Tensor, "sentence group"]  # the best of them that may be an output


@runtime_checkable
class Chooser(Protocol):
    """A way to choose among all continuations of all beams."""

    @property
    def groups(self) -> int:
        """The beams of a sentence are this many searches of equal size."""

    def __call__(
        self,
        totals: Float[Tensor, "sentence beam vocabulary"],
        prefixes: Int[Tensor, "sentence beam length"],
        sentences: Sequence[int],
        *,
        end: int,
    ) -> Choice:
        """Choose as many living continuations as there are beams.

        Args:
            totals: log-probability of each beam with each token behind it.
            prefixes: the beams.
            sentences: of which sentence of the batch each row is.
            end: the token that ends an output.
        """


def likeliest(totals: Float[Tensor, "sentence beam vocabulary"], end: int) -> Choice:
    """Choose by log-probability alone; an output must be among the `beams` best continuations."""
    beams, vocabulary = totals.shape[1:]
    # Of 2 * beams candidates at least `beams` do not end, whatever happens (one end a beam).
    candidates, flat = totals.flatten(1).topk(2 * beams)
    ended = flat % vocabulary == end
    row, place = ended[:, :beams].nonzero(as_tuple=True)
    complete = list(zip(row.tolist(), (flat[row, place] // vocabulary).tolist(), strict=True))
    going_on = ended.to(torch.int8).argsort(dim=1, stable=True)[:, :beams]  # in order of score
    scores = candidates.gather(1, going_on)
    return Choice(complete, flat.gather(1, going_on), scores, scores[:, :1])


class Likeliest:
    """The best continuations, whatever they are: beam search as in the books."""

    groups = 1

    def __call__(
        self,
        totals: Float[Tensor, "sentence beam vocabulary"],
        prefixes: Int[Tensor, "sentence beam length"],
        sentences: Sequence[int],
        *,
        end: int,
    ) -> Choice:
        """Choose by log-probability alone."""
        return likeliest(totals, end)


LIKELIEST = Likeliest()
