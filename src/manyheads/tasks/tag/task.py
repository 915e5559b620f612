"""Tagging: one label per token. Korean word spacing: is a character followed by a space?"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from manyheads.data.batching.batches import length_batches, pad
from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.characters import PAD, Characters
from manyheads.data.tokenizers.spacing import without_spaces
from manyheads.tokenwise.token_task import Examples, predict_batches

METRICS = ("f1", "exact", "accuracy", "loss")
SPACE = 1  # the positive tag
ROWS = 64  # texts per batch in prediction


class SpacedCharacter(NamedTuple):
    """A character, and the probability that a space follows it."""

    character: str
    probability: float


class Spacing(Examples):
    """Characters without spaces, with a tag for each: whether a space followed it."""

    padding = PAD

    def __init__(
        self, sentences: Sentences, characters: Characters, max_length: int | None = None
    ) -> None:
        pairs = [without_spaces(line) for line in sentences.lines]
        super().__init__(sentences, [characters.encode(text) for text, _ in pairs], max_length)
        self.tags = [tags for _, tags in pairs]

    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Return the characters and their tags."""
        return list(self.sequences[index]), self.tags[index]


def measure(model: nn.Module, examples: Examples, max_tokens: int) -> dict[str, float]:
    """Measure F1 of the spaces, the share of texts without error, accuracy and loss.

    Precision is the share of predicted spaces that are correct, recall the share of true spaces
    that are predicted, and F1 their harmonic mean (van Rijsbergen 1979), in percent.
    """
    loss, count, right, set_, true, hits, texts, whole = 0.0, 0, 0, 0, 0, 0, 0, 0
    for batch, log_probabilities in predict_batches(model, examples, max_tokens):
        predicted, wanted = log_probabilities.argmax(dim=-1), batch.targets
        loss += F.nll_loss(log_probabilities, wanted, reduction="sum").item()
        same = predicted == wanted
        count += len(wanted)
        right += int(same.sum())
        set_ += int((predicted == SPACE).sum())
        true += int((wanted == SPACE).sum())
        hits += int((same & (wanted == SPACE)).sum())
        each = torch.ones_like(batch.scored)
        each[batch.scored] = same
        texts += len(each)
        whole += int(each.all(dim=1).sum())
    return {
        "f1": 100 * 2 * hits / max(set_ + true, 1),
        "exact": 100 * whole / texts,
        "accuracy": 100 * right / count,
        "loss": loss / count,
    }


@torch.inference_mode()
def tag(
    model: nn.Module, characters: Characters, texts: Sequence[str]
) -> list[list[SpacedCharacter]]:
    """Return for every character of each text, without its spaces, P(a space follows)."""
    device = next(model.parameters()).device
    plain = [without_spaces(text)[0] for text in texts]
    tagged: list[list[SpacedCharacter]] = [[] for _ in texts]
    written = [i for i, text in enumerate(plain) if text]
    for chosen in length_batches(written, lambda i: len(plain[i]), ROWS):
        tokens = pad([characters.encode(plain[i]) for i in chosen], PAD).to(device)
        probabilities = F.log_softmax(model(tokens).float(), dim=-1)[..., SPACE].exp()
        for row, i in enumerate(chosen):
            values = probabilities[row, : len(plain[i])].tolist()
            tagged[i] = [
                SpacedCharacter(character, probability)
                for character, probability in zip(plain[i], values, strict=True)
            ]
    return tagged
