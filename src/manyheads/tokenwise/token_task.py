"""Training with a target per token: the next token, a masked token, or a tag."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.bounded_numbers import Count
from manyheads.data.batching.batches import TokenBatch, pad
from manyheads.data.batching.buckets import length_buckets, rank_part
from manyheads.data.text.corpus import Sentences
from manyheads.errors import DataError
from manyheads.train.losses import projected_cross_entropy
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Indices, Loss

METRICS = ("loss", "perplexity", "accuracy")


@dataclass(frozen=True, kw_only=True)
class TokenTrainConfig(TrainConfig):
    """The [train] table of models of single texts."""

    max_tokens: Count = 4096  # per batch, padding included
    max_length: Count = 256  # tokens; longer texts are left out of training, and counted


class Examples(ABC):
    """Texts as token ids, with targets for their tokens."""

    padding = 0

    def __init__(
        self,
        sentences: Sentences,
        sequences: Sequence[Sequence[int]],
        max_length: int | None = None,
    ) -> None:
        """Leave out texts longer than max_length.

        Raises:
            DataError: no text is short enough.
        """
        self.sentences = sentences
        self.sequences = sequences
        lengths = np.array([len(sequence) for sequence in sequences])
        fits = (lengths > 0) & (lengths <= (max_length or math.inf))
        self.kept = np.flatnonzero(fits)
        self.lengths = lengths[self.kept]
        if not len(self.kept):
            raise DataError(
                f"{sentences.origin}: no line has at most {max_length} tokens. "
                "Raise train.max_length, or give one sentence a line."
            )

    @property
    def left_out(self) -> int:
        """Count the texts that are too long or empty."""
        return len(self.sequences) - len(self.kept)

    def plan(self, max_tokens: int, *, seed: int, epoch: int) -> list[Indices]:
        """Bucket the texts by length."""
        buckets = length_buckets(self.lengths, self.lengths, max_tokens, seed=seed, epoch=epoch)
        return [self.kept[bucket] for bucket in buckets]

    def batch(self, indices: Indices, epoch: int) -> TokenBatch:
        """Build a batch of these texts."""
        texts, wanted = zip(*(self.example(int(index), epoch) for index in indices), strict=True)
        tokens, answers = pad(texts, self.padding), pad(wanted, IGNORED)
        scored = answers != IGNORED
        return TokenBatch(tokens, scored, answers[scored], indices, sum(map(len, texts)))

    @abstractmethod
    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Return the tokens of a text, and for each its target or IGNORED."""


IGNORED = -1  # no target for this token

Measure = Callable[[nn.Module, Examples, int], dict[str, float]]


@dataclass(eq=False)
class TokenTask:
    """A Task for the training loop."""

    train: Examples
    valid: Examples
    config: TokenTrainConfig
    measure: Measure
    _: KW_ONLY
    seed: int
    unit = "tokens"

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[Indices]:
        """Bucket the texts by length."""
        batches = self.train.plan(self.config.max_tokens, seed=self.seed, epoch=epoch)
        return rank_part(batches, rank, world)

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[TokenBatch]:
        """Build the planned batches."""
        for indices in batches:
            yield self.train.batch(indices, epoch)

    def loss(self, model: nn.Module, batch: TokenBatch) -> Loss:
        """Sum the label-smoothed cross-entropy over the tokens with a target."""
        batch = batch.to(next(model.parameters()).device)
        cross_entropy = partial(
            projected_cross_entropy, targets=batch.targets, smoothing=self.config.label_smoothing
        )
        return Loss(model(batch.tokens, batch.scored, cross_entropy), len(batch.targets), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Measure on the validation texts."""
        return self.measure(model, self.valid, self.config.max_tokens)

    def describe(self, batch: TokenBatch) -> str:
        """Return the file and line numbers of the texts."""
        return self.train.sentences.describe(batch.indices)


@torch.inference_mode()
def predict_batches(
    model: nn.Module, examples: Examples, max_tokens: int
) -> Iterator[tuple[TokenBatch, Tensor]]:
    """Run a model on all examples; yield batches with log-probabilities (scored, classes)."""
    device = next(model.parameters()).device
    for indices in examples.plan(max_tokens, seed=0, epoch=0):
        batch = examples.batch(indices, epoch=0)
        logits = model(batch.tokens.to(device), batch.scored.to(device))
        yield batch, F.log_softmax(logits.float(), dim=-1).cpu()


def measure(model: nn.Module, examples: Examples, max_tokens: int) -> dict[str, float]:
    """Measure mean cross-entropy, perplexity, and accuracy in percent."""
    loss, right, count = 0.0, 0, 0
    for batch, log_probabilities in predict_batches(model, examples, max_tokens):
        loss += F.nll_loss(log_probabilities, batch.targets, reduction="sum").item()
        right += int((log_probabilities.argmax(dim=-1) == batch.targets).sum())
        count += len(batch.targets)
    mean = loss / count
    # The perplexity of a bad model may overflow a float.
    return {"loss": mean, "perplexity": math.exp(min(mean, 700)), "accuracy": 100 * right / count}
