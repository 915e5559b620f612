"""Sentences that the doctor looks at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from manyheads.data.text.corpus import Sentences
from manyheads.doctor import text_leakage
from manyheads.doctor.finding import cut
from manyheads.doctor.run_batches import (
    TEXTS,
    Examined,
    LineWriter,
    Predictions,
    Samples,
    random_sample,
)
from manyheads.recipe_data.named_splits import training_sentences
from manyheads.recipe_data.text_data import SentenceData
from manyheads.tokenwise.token_task import predict_batches
from manyheads.train.training_task import Task


@dataclass(frozen=True, kw_only=True)
class LineSamples(Samples):
    """Of a language model or a tagger."""

    lines: tuple[Sentences, Sentences]
    classes: tuple[str, ...] = ()  # of a tagger

    def predictions(self, model: nn.Module, task: Any) -> Predictions:
        """Return log-probabilities of tokens."""
        batches = list(predict_batches(model, task.train, task.config.max_tokens))
        return torch.cat([each for _, each in batches]), torch.cat([b.targets for b, _ in batches])

    def examples(self) -> list[str]:
        """Show lines."""
        return [cut(line) for line in self.lines[0].lines[:3]]

    def class_name(self, number: int) -> str:
        """Name a tag or a token."""
        return repr(self.classes[number]) if self.classes else super().class_name(number)

    def leaks(self) -> Examined:
        """Look for validation lines in the training data."""
        return self.leaks_in_texts(*text_leakage.lines_seen_before(*self.lines))


def sample_lines(
    data: SentenceData,
    make: Callable[[Sentences], Task[Any]],
    *,
    classes: tuple[str, ...] = (),
    write: LineWriter | None = None,
) -> LineSamples:
    """Take some sentences of both splits; `write` examines what a model makes of those."""
    splits = training_sentences(data)
    train, valid = (
        Sentences([each.lines[i] for i in random_sample(len(each), TEXTS)], each.origin)
        for each in splits
    )
    return LineSamples(
        train=make(train),
        valid=make(valid),
        sizes=(len(train), len(valid)),
        validation=len(splits[1]),
        lines=splits,
        classes=classes,
        write=None if write is None else lambda model, step, _: write(model, valid, step),
    )
