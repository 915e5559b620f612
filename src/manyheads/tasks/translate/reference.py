"""Score a given translation: teacher forcing (atlas T16)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.generation.special_ids import special_ids
from manyheads.lens.measures.token_losses import loss_table
from manyheads.lens.panels import Figure
from manyheads.tasks.translate.predictor import Translator

Pair = tuple[Tensor, Tensor]


def teacher_forcing(translator: Translator, text: str, tokens: Sequence[int]) -> Pair:
    """Return ids of a source and of a translation with its start and end, (1, token) each."""
    ids = special_ids(translator.model)
    source = [*translator.tokenizers.source.encode([text])[0], ids.end]
    return translator.tensor(source), translator.tensor([ids.start, *tokens, ids.end])


class Scored(NamedTuple):
    """The tokens of a translation, the end included, with their probabilities."""

    tokens: list[str]
    probabilities: list[float]
    uniform: float  # the loss of the uniform distribution: log of the vocabulary's size


@torch.inference_mode()
def score_reference(translator: Translator, source: str, reference: str) -> Scored:
    """Run a model on a source and its translation at once, under the causal mask."""
    for name, text in (("source", source), ("reference", reference)):
        if not text.strip():
            raise UsageError(f"The {name} is empty: give a sentence to score.")
    targets = translator.tokenizers.target
    inputs, target = teacher_forcing(translator, source, targets.encode([reference])[0])
    wanted = target[0, 1:]
    logits = translator.model(inputs, target[:, :-1])[0].double()
    chosen = logits.log_softmax(dim=-1).gather(1, wanted[:, None])[:, 0]
    names = list(map(targets.piece, wanted.tolist()))
    return Scored(names, chosen.exp().tolist(), math.log(logits.shape[-1]))


def reference_figure(translator: Translator, source: str, reference: str) -> Figure:
    """Show the loss of a given translation token by token."""
    scored = score_reference(translator, source, reference)
    return loss_table(
        scored.tokens,
        scored.probabilities,
        title="How surprised the model was by each word of your translation",
        given=f"of your translation, given the source and those before it (guessing among all "
        f"tokens would be {scored.uniform:.3g})",
    )
