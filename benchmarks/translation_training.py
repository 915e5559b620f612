"""Training steps of Transformers on batches of like length, as many real tokens for each side.

The lengths are drawn once for all machines, like those of Multi30k in a vocabulary of 10,000
(lognormal; 14.5 tokens in the mean, a target within about a fifth of its source). A run makes a
few updates, on batches spread evenly over the plan from the shortest to the longest. Our loss is
that of the translation task, with smoothed labels; Hugging Face's is its model's own, without.
Beside it stands Hugging Face on the same sentences in batches drawn at random, each as long as its
longest sentence: what a loader without buckets gives it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import flops
from benchmarks.peers import hf_marian
from benchmarks.protocol import Case, Contender
from benchmarks.work import TRAINING, learning
from manyheads.data.batching.batches import TextBatch, pad
from manyheads.data.batching.buckets import length_buckets
from manyheads.models.presets import PRESETS
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.tasks.translate.recipe import TranslateTrainConfig
from manyheads.tasks.translate.task import TranslateTask
from manyheads.train.training_task import Loss

TITLE = "Training a translator"
PAIRS = 29_000  # of Multi30k
SMOOTHING = 0.1
IGNORED = -100  # the label that Hugging Face leaves out

Pair = tuple[list[int], list[int]]  # tokens of a sentence and of its translation


@dataclass(frozen=True)
class Batch:
    """A batch as each side wants it; the same tokens, and the same padding."""

    ours: TextBatch
    present: Tensor  # 1 where a source token is not padding
    labels: Tensor  # what is predicted; padding ignored
    lengths: list[tuple[int, int]]  # of source, and of what is predicted


def cases() -> Iterator[Case]:
    yield _case("transformer-tiny", vocabulary=10_000, max_tokens=4096, updates=3)
    yield _case("transformer-base", vocabulary=16_000, max_tokens=1024, updates=2)


def _case(name: str, *, vocabulary: int, max_tokens: int, updates: int) -> Case:
    preset = PRESETS[name]
    assert isinstance(preset, TransformerConfig)
    config = replace(preset, vocabulary=vocabulary)
    buckets = _buckets(config, max_tokens, updates)
    batches = [_batch(config, pairs) for pairs in buckets]
    mixed = [_batch(config, pairs) for pairs in _mixed(buckets)]
    # A task without data: nothing but its loss is called.
    task = TranslateTask.__new__(TranslateTask)
    task.config = TranslateTrainConfig(label_smoothing=SMOOTHING)
    task.ids = config
    ours, theirs = Transformer(config), hf_marian(config)
    sides: list[tuple[str, nn.Module, list[Batch], Callable[[nn.Module, Batch], Loss]]] = [
        ("manyheads", ours, batches, lambda model, batch: task.loss(model, batch.ours)),
        ("Hugging Face", theirs, batches, _hf_loss),
        ("Hugging Face, random batches", theirs, mixed, _hf_loss),
    ]
    lengths = [pair for batch in batches for pair in batch.lengths]
    return Case(
        title=f"{name}, vocabulary {vocabulary:,}, batches of {max_tokens:,} tokens a side",
        unit="tokens/s",
        amount=sum(batch.ours.units for batch in batches),
        flops=flops.TRAINING * flops.translation(config, lengths),
        contenders=[
            Contender(name, precision, learning(model, precision, given, loss))
            for name, model, given, loss in sides
            for precision in TRAINING
        ],
    )


def _hf_loss(model: nn.Module, batch: Batch) -> Loss:
    mean = model(
        input_ids=batch.ours.source, attention_mask=batch.present, labels=batch.labels
    ).loss
    weight = sum(target for _, target in batch.lengths)
    return Loss(mean * weight, weight, {})


def _buckets(config: TransformerConfig, max_tokens: int, count: int) -> list[list[Pair]]:
    random = np.random.default_rng(0)
    source = np.exp(random.normal(2.62, 0.32, PAIRS))
    target = source * np.exp(random.normal(0.0, 0.19, PAIRS))
    source, target = (side.round().astype(int).clip(2, 60) for side in (source, target))
    plan = length_buckets(source + 1, target + 1, max_tokens, seed=0, epoch=0)  # with end tokens
    plan.sort(key=lambda indices: int(source[indices].max()))
    chosen = [plan[len(plan) * (2 * place + 1) // (2 * count)] for place in range(count)]
    first = max(config.pad, config.start, config.end) + 1  # the first ordinary token

    def sentence(length: int) -> list[int]:
        return list(map(int, random.integers(first, config.vocabulary, length)))

    return [
        [(sentence(source[index]), sentence(target[index])) for index in indices]
        for indices in chosen
    ]


def _mixed(buckets: list[list[Pair]]) -> list[list[Pair]]:
    """Deal the same pairs into as many batches, whatever their length."""
    pairs = [pair for bucket in buckets for pair in bucket]
    order = np.random.default_rng(1).permutation(len(pairs))
    return [
        [pairs[index] for index in order[place :: len(buckets)]] for place in range(len(buckets))
    ]


def _batch(config: TransformerConfig, pairs: list[Pair]) -> Batch:
    lengths = [(len(source) + 1, len(target) + 1) for source, target in pairs]
    source = pad([[*tokens, config.end] for tokens, _ in pairs], config.pad)
    target = pad([[config.start, *tokens, config.end] for _, tokens in pairs], config.pad)
    labels = target[:, 1:]
    return Batch(
        TextBatch(source, target, np.arange(len(pairs)), sum(map(sum, lengths))),
        (source != config.pad).long(),
        torch.where(labels == config.pad, IGNORED, labels),
        lengths,
    )
