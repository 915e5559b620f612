"""What a model gives to a translation that somebody else wrote: teacher forcing (atlas T16)."""

import math
from typing import NamedTuple

import torch

from manyheads.app.predict import Translator
from manyheads.data.batches import pad
from manyheads.errors import UsageError
from manyheads.lens.losses import loss_table
from manyheads.lens.panels import Figure
from manyheads.tasks.decoding import special_ids


class Scored(NamedTuple):
    """The tokens of a translation, the end included, and what a model gave to each."""

    tokens: list[str]
    probabilities: list[float]
    uniform: float  # the loss of knowing nothing: log of the vocabulary's size


@torch.inference_mode()
def score_reference(translator: Translator, source: str, reference: str) -> Scored:
    """Let a model read a source and its translation at once, under the causal mask.

    Raises:
        UsageError: one of them is empty.
    """
    for name, text in (("source", source), ("reference", reference)):
        if not text.strip():
            raise UsageError(f"The {name} is empty: give a sentence to score.")
    sources, targets = translator.tokenizers
    ids = special_ids(translator.model)
    device = next(translator.model.parameters()).device
    tokens = [*targets.encode([reference])[0], ids.end]
    given = pad([[*sources.encode([source])[0], ids.end]], ids.pad).to(device)
    read = pad([[ids.start, *tokens[:-1]]], ids.pad).to(device)
    logits = translator.model(given, read)[0].double()
    wanted = torch.tensor(tokens, device=device)[:, None]
    chosen = logits.log_softmax(dim=-1).gather(1, wanted)[:, 0]
    return Scored(
        [targets.piece(token) for token in tokens],
        chosen.exp().tolist(),
        math.log(logits.shape[-1]),
    )


def reference_figure(translator: Translator, source: str, reference: str) -> Figure:
    """Show what a translation of one's own costs, token by token."""
    scored = score_reference(translator, source, reference)
    return loss_table(
        scored.tokens,
        scored.probabilities,
        title="What your translation costs",
        given=f"of your translation, given the source and those before it (guessing among all "
        f"tokens would be {scored.uniform:.3g})",
    )
