"""The selection step of a beam search: which continuations of a sentence's beams are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.nn.shapes import Grid, PerBeam, Prefixes, Scores


class Choice(NamedTuple):
    """The selected continuations of the beams of each sentence."""

    complete: list[Grid]  # (row, beam): these beams with an end token are outputs
    living: PerBeam  # beam * vocabulary + token: these go on
    scores: Float[Tensor, "sentence beam"]  # their log-probabilities
    best: Float[Tensor, "sentence group"]  # the best of them that may be an output


@runtime_checkable
class BeamSelector(Protocol):
    """Selects continuations among those of all beams."""

    @property
    def groups(self) -> int:
        """The number of searches of equal size that the beams of a sentence are divided into."""

    def __call__(
        self, totals: Scores, prefixes: Prefixes, sentences: Sequence[int], *, end: int
    ) -> Choice:
        """Choose as many unfinished continuations as there are beams.

        Args:
            totals: log-probability of each beam with each token behind it.
            prefixes: the beams.
            sentences: of which sentence of the batch each row is.
            end: the token that ends an output.
        """


def top_continuations(totals: Scores, end: int) -> Choice:
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


class TopK:
    """Standard beam search: the continuations with the highest log-probability."""

    groups = 1

    def __call__(
        self, totals: Scores, prefixes: Prefixes, sentences: Sequence[int], *, end: int
    ) -> Choice:
        """Choose by log-probability alone."""
        return top_continuations(totals, end)


TOP_K = TopK()


@dataclass(frozen=True)
class Diverse:
    """Groups of beams: each is a beam search that avoids the tokens chosen by groups before it.

    Vijayakumar et al. 2018, "Diverse Beam Search". A token loses `penalty` for every beam of an
    earlier group that took it at this step (Hamming diversity). The penalty decides what goes on
    and is then forgotten: hypotheses are ranked by the model's own log-probability. Where the model
    is sure, groups may still say the same.
    """

    groups: int
    penalty: float

    def __call__(
        self, totals: Scores, prefixes: Prefixes, sentences: Sequence[int], *, end: int
    ) -> Choice:
        """Choose group by group."""
        count, beams, vocabulary = totals.shape
        size = beams // self.groups
        said = totals.new_zeros(count, vocabulary)  # by how many beams of the groups so far
        complete, living, scores = [], [], []
        for first in range(0, beams, size):
            group = totals[:, first : first + size]
            choice = top_continuations(group - self.penalty * said[:, None], end)
            chosen = group.flatten(1).gather(1, choice.living)
            said.scatter_add_(1, choice.living % vocabulary, chosen.isfinite().to(said.dtype))
            complete += [(row, first + beam) for row, beam in choice.complete]
            living.append(choice.living + first * vocabulary)
            scores.append(chosen)
        best = torch.stack([group.amax(dim=1) for group in scores], dim=1)
        return Choice(complete, torch.cat(living, dim=1), torch.cat(scores, dim=1), best)
