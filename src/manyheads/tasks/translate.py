"""Translation: sentence pairs, an encoder-decoder, cross-entropy per token, BLEU or exact match."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import nn

from manyheads.data.batches import TextBatch, pad
from manyheads.data.buckets import length_buckets
from manyheads.data.text import Corpus
from manyheads.data.tokenizer import END, PAD, START, Tokenizers
from manyheads.errors import DataError
from manyheads.tasks.decoding import DecodeConfig, translate
from manyheads.tasks.metrics import TEXT_METRICS, TextMetric
from manyheads.train.config import Count, TrainConfig
from manyheads.train.losses import smoothed_cross_entropy
from manyheads.train.task import Indices, Loss


@dataclass(frozen=True, kw_only=True)
class TranslateTrainConfig(TrainConfig):
    """The [train] table of a translator."""

    max_tokens: Count = 4096  # a batch and side, padding included
    max_length: Count = 256  # tokens; longer pairs are left out of training, and counted


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """The [evaluate] table: what is measured; the first metric is the headline."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    metrics: tuple[TextMetric, ...] = ("bleu",)

    def __post_init__(self) -> None:
        """Refuse to measure nothing."""
        if not self.metrics:
            raise ValueError(f"metrics is empty: name at least one of {', '.join(TEXT_METRICS)}")


class TranslateTask:
    """A Task for the training loop."""

    unit = "tokens"

    def __init__(
        self,
        train: Corpus,
        valid: Corpus,
        tokenizers: Tokenizers,
        config: TranslateTrainConfig,
        evaluate: EvaluateConfig,
        *,
        seed: int,
    ) -> None:
        """Turn the corpus into token ids.

        Raises:
            DataError: no pair is short enough.
        """
        self.valid = valid
        self.tokenizers = tokenizers
        self.config = config
        self.metrics = evaluate.metrics
        self.seed = seed
        self.train = train
        source = [[*ids, END] for ids in tokenizers.source.encode(train.source)]
        target = [[START, *ids, END] for ids in tokenizers.target.encode(train.target)]
        lengths = np.array([[len(s), len(t) - 1] for s, t in zip(source, target, strict=True)])
        self.kept = np.flatnonzero(lengths.max(axis=1) <= config.max_length)
        self.left_out = len(train) - len(self.kept)
        if not len(self.kept):
            raise DataError(
                f"{train.origin}: no pair has at most {config.max_length} tokens a side. "
                "Raise train.max_length, or give one sentence a line."
            )
        self.source, self.target = source, target
        self.lengths = lengths[self.kept]

    def plan(self, epoch: int) -> list[Indices]:
        """Bucket the pairs by length."""
        buckets = length_buckets(
            self.lengths[:, 0],
            self.lengths[:, 1],
            self.config.max_tokens,
            seed=self.seed,
            epoch=epoch,
        )
        return [self.kept[bucket] for bucket in buckets]

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[TextBatch]:
        """Pad the planned batches."""
        for indices in batches:
            source = [self.source[index] for index in indices]
            target = [self.target[index] for index in indices]
            units = sum(map(len, source)) + sum(map(len, target)) - len(target)
            yield TextBatch(pad(source, PAD), pad(target, PAD), indices, units)

    def loss(self, model: nn.Module, batch: TextBatch) -> Loss:
        """Sum the label-smoothed cross-entropy over all target tokens (teacher forcing)."""
        batch = batch.to(next(model.parameters()).device)
        wanted = batch.target[:, 1:]
        real = wanted != PAD
        logits = model(batch.source, batch.target[:, :-1], real)  # input: shifted right by START
        loss = smoothed_cross_entropy(logits, wanted[real], self.config.label_smoothing)
        return Loss(loss, len(logits), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Translate the validation sources greedily and score them."""
        outputs = translate(model, self.tokenizers, self.valid.source, DecodeConfig(beams=1))
        texts = [best[0].text for best in outputs]
        return {name: TEXT_METRICS[name](texts, self.valid.target).value for name in self.metrics}

    def describe(self, batch: TextBatch) -> str:
        """Name the pairs by file and line."""
        return self.train.describe(batch.indices)
