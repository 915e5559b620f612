"""Diverse beam search: Vijayakumar et al. 2018, "Diverse Beam Search"."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from manyheads.decode.beam_selection import Choice, top_continuations
from manyheads.nn.shapes import Prefixes, Scores


@dataclass(frozen=True)
class Diverse:
    """Groups of beams: each is a beam search that avoids the tokens chosen by groups before it.

    A token loses `penalty` for every beam of an earlier group that took it at this step (Hamming
    diversity). The penalty decides what goes on and is then forgotten: hypotheses are ranked by
    the model's own log-probability. Where the model is sure, groups may still say the same.
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
