"""Log-probabilities of the tokens of given outputs (teacher forcing)."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from manyheads.data.batching.batches import length_batches, pad
from manyheads.generation.special_ids import special_ids

Tokens = Sequence[int]
ROWS = 32  # pairs in a batch: all logits are in memory


@runtime_checkable
class TokenScorer(Protocol):
    """A model whose engine scores given outputs by itself."""

    def score(self, sources: Sequence[Tokens], outputs: Sequence[Tokens]) -> list[list[float]]:
        """Do what `token_log_probabilities` does."""


def token_log_probabilities(
    model: nn.Module, sources: Sequence[Tokens], outputs: Sequence[Tokens]
) -> list[list[float]]:
    """Return the log-probability of each token of each output and of its end, given the source.

    Args:
        model: an encoder-decoder, or a `TokenScorer`.
        sources: token ids, the end included.
        outputs: token ids, without start and end.
    """
    if isinstance(model, TokenScorer):
        return model.score(sources, outputs)
    terms: list[list[float]] = [[] for _ in sources]
    for rows, target, logits in _logits(model, sources, outputs):
        scores = logits.float().log_softmax(dim=-1).gather(2, target[:, 1:, None])[..., 0]
        for row, n in enumerate(rows):
            terms[n] = scores[row, : len(outputs[n]) + 1].tolist()
    return terms


def largest_logit(model: nn.Module, sources: Sequence[Tokens], outputs: Sequence[Tokens]) -> float:
    """Return the largest absolute logit of a torch model on given outputs."""
    return max(
        float(logits[row, : len(outputs[n]) + 1].abs().max())
        for rows, _, logits in _logits(model, sources, outputs)
        for row, n in enumerate(rows)
    )


@torch.inference_mode()
def _logits(
    model: nn.Module, sources: Sequence[Tokens], outputs: Sequence[Tokens]
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Run whole outputs, similar lengths together: their numbers, their ids, and the logits."""
    ids = special_ids(model)
    device = next(model.parameters()).device
    numbers = range(len(sources))
    for rows in length_batches(numbers, lambda n: len(sources[n]) + len(outputs[n]), ROWS):
        source = pad([sources[n] for n in rows], ids.pad).to(device)
        target = pad([[ids.start, *outputs[n], ids.end] for n in rows], ids.pad).to(device)
        yield rows, target, model(source, target[:, :-1])
