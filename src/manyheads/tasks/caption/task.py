"""Captions: images in, a text in a language out; cross-entropy per token, exact match and chrF."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.evaluate_request import EvaluateConfig, TextMetric
from manyheads.bounded_numbers import Count
from manyheads.data.augment.augment import Augmentation
from manyheads.data.batching.batches import CaptionBatch, pad
from manyheads.data.batching.buckets import rank_part, shuffled
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.images.pixels import Pixels
from manyheads.data.tokenizers.tokenizer import END, PAD, START, Tokenizer
from manyheads.decode.step import Step
from manyheads.errors import DataError
from manyheads.fit.training_images import CPU, ImageTrainConfig, TrainingImages
from manyheads.generation.batched_search import ROWS, batches, check_search, plan, search
from manyheads.generation.special_ids import special_ids
from manyheads.generation.text_decoding import Translation
from manyheads.generation.token_details import describe
from manyheads.measure.text_metrics import TEXT_METRICS, Score
from manyheads.streams import generator
from manyheads.train.losses import projected_cross_entropy
from manyheads.train.training_task import EXAMPLES, Indices, Loss

LONGEST = 128  # tokens of a caption, unless the [decode] table says otherwise


@dataclass(frozen=True, kw_only=True)
class CaptionTrainConfig(ImageTrainConfig):
    """The [train] table of a captioner."""

    max_length: Count = 128  # tokens; longer captions are left out of training, and counted
    captions: Count | None = None  # drawn for each image in each epoch; None: all it has


@dataclass(frozen=True, kw_only=True)
class CaptionEvaluateConfig(EvaluateConfig):
    """The [evaluate] table of captions."""

    metrics: tuple[TextMetric, ...] = ("exact", "chrf")


class CaptionTask(TrainingImages[CaptionTrainConfig]):
    """A Task for the training loop: a batch has all captions of its images."""

    def __init__(
        self,
        train: CaptionedImages,
        valid: CaptionedImages,
        tokenizer: Tokenizer,
        preprocessing: Preprocessing,
        augmentation: Augmentation,
        config: CaptionTrainConfig,
        evaluate: CaptionEvaluateConfig,
        *,
        seed: int,
        device: torch.device = CPU,
    ) -> None:
        """Turn the captions into token ids.

        Raises:
            DataError: no caption is short enough, or a language has no token.
        """
        images = train.images, valid.images
        super().__init__(*images, preprocessing, augmentation, config, seed=seed, device=device)
        self.tokenizer = tokenizer
        self.metrics = evaluate.metrics
        self.references = references(valid)
        starts = [language_token(tokenizer, each) for each in train.languages]
        for language in {language for _, language in self.references}:
            language_token(tokenizer, language)
        encoded = tokenizer.encode(train.texts)
        self.targets: list[list[list[int]]] = [[] for _ in range(len(train))]
        for owner, first, tokens in zip(train.owners.tolist(), starts, encoded, strict=True):
            if len(tokens) + 2 <= config.max_length:  # with the language, and a start or an end
                self.targets[owner].append([START, first, *tokens, END])
        self.left_out = len(encoded) - sum(map(len, self.targets))
        self.kept = np.array([n for n, each in enumerate(self.targets) if each], dtype=int)
        if not len(self.kept):
            raise DataError(
                f"{train.images.origin}: no caption has at most {config.max_length} tokens. Raise "
                "train.max_length."
            )

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[Indices]:
        """Shuffle the images that have captions."""
        batches = shuffled(len(self.kept), self.config.batch_size, seed=self.seed, epoch=epoch)
        return rank_part([self.kept[batch] for batch in batches], rank, world)

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[CaptionBatch]:
        """Read, augment and normalise the planned images; pad all of their captions."""
        augment = self.augmenter(epoch)
        for indices in batches:
            pixels = augment(self.pixels[indices].to(self.device), indices)
            images = self.preprocessing.normalise(pixels)
            chosen = [self._captions(index, epoch) for index in indices.tolist()]
            owners = [row for row, targets in enumerate(chosen) for _ in targets]
            targets = [target for targets in chosen for target in targets]
            rows = torch.tensor(owners, dtype=torch.long)
            yield CaptionBatch(images, pad(targets, PAD), rows, indices)

    def _captions(self, index: int, epoch: int) -> list[list[int]]:
        """Draw captions of an image for an epoch: a pure function of seed, epoch and index."""
        targets, count = self.targets[index], self.config.captions
        if count is None or len(targets) <= count:
            return targets
        drawn = generator(self.seed, "captions", epoch, index).permutation(len(targets))
        return [targets[number] for number in drawn[:count]]

    def loss(self, model: nn.Module, batch: CaptionBatch) -> Loss:
        """Sum the label-smoothed cross-entropy over all tokens behind the language's."""
        batch = batch.to(next(model.parameters()).device)
        shifted, wanted = batch.target[:, :-1], batch.target[:, 1:]
        scored = wanted != PAD
        scored[:, 0] = False  # the language is given
        targets = wanted[scored]
        readout = partial(
            projected_cross_entropy, targets=targets, smoothing=self.config.label_smoothing
        )
        return Loss(model(batch.images, shifted, batch.owners, scored, readout), len(targets), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Caption the validation images greedily in every language that they have captions in."""
        outputs = caption(
            model, self.tokenizer, self.valid_pixels, list(self.references), DecodeConfig(beams=1)
        )
        texts = [best.text for best, *_ in outputs]
        rights = list(self.references.items())
        self.examples = [
            self.example(rights[n][0][0], texts[n], " / ".join(rights[n][1]))
            for n in evenly_spaced(len(texts), EXAMPLES)
        ]
        scores = caption_scores(texts, self.references, self.metrics)
        return {name: score.value for name, score in scores.items()}

    def rehearse(self, model: nn.Module) -> float:
        """Return the seconds of a validation with captions as long as the right ones, from some."""
        wanted = list(self.references)
        some = [wanted[n] for n in evenly_spaced(len(wanted), ROWS)]
        rights = [self.references[each][0] for each in some]
        lengths = np.array([len(each) for each in self.tokenizer.encode(rights)])
        longest = int(lengths.mean() + lengths.max()) // 2 + 1
        began = time.monotonic()
        decode = DecodeConfig(beams=1, max_length=longest)
        caption(model, self.tokenizer, self.valid_pixels, some, decode)
        return (time.monotonic() - began) / len(some) * len(wanted)


References = dict[tuple[int, str], list[str]]  # by image and language


def references(captions: CaptionedImages) -> References:
    """Collect the captions of each image in each language."""
    by_image: References = {}
    rows = zip(captions.owners.tolist(), captions.languages, captions.texts, strict=True)
    for owner, language, text in rows:
        by_image.setdefault((owner, language), []).append(text)
    return by_image


def caption_scores(
    texts: Sequence[str], references: References, metrics: Sequence[TextMetric]
) -> dict[str, Score]:
    """Score one text for each image and language: the mean over languages, then each language.

    Texts are in the order of `references`, and may equal any of theirs.
    """
    by_language: dict[str, tuple[list[str], list[list[str]]]] = {}
    for text, ((_, language), right) in zip(texts, references.items(), strict=True):
        outputs, rights = by_language.setdefault(language, ([], []))
        outputs.append(text)
        rights.append(right)
    means: dict[str, Score] = {}
    each: dict[str, Score] = {}
    for name in metrics:
        own = [TEXT_METRICS[name](*both, code) for code, both in by_language.items()]
        mean = float(np.mean([score.value for score in own]))
        note = f", mean of {len(own)} languages" if len(own) > 1 else ""
        means[name] = Score(mean, f"{own[0].signature}{note}")
        each |= {f"{name}_{code}": score for code, score in zip(by_language, own, strict=True)}
    return means | each if len(by_language) > 1 else means


def language_token(tokenizer: Tokenizer, language: str) -> int:
    """Return the token that a caption in a language begins with.

    Raises:
        DataError: the model has not learned this language.
    """
    known = tokenizer.languages
    if language not in known:
        raise DataError(
            f"The language {language!r} is not one that the model writes: {', '.join(known)}."
        )
    return known[language]


def language_prefix(tokenizer: Tokenizer, language: str) -> list[int]:
    """Return the tokens in front of a caption: its language's, if the model knows languages."""
    return [language_token(tokenizer, language)] if tokenizer.languages else []


@torch.inference_mode()
def caption(
    model: nn.Module,
    tokenizer: Tokenizer,
    pixels: Pixels | tuple[Tensor, Preprocessing],
    wanted: Sequence[tuple[int, str]],
    decode: DecodeConfig,
    *,
    n_best: int = 1,
    seed: int = 1,
    details: bool = False,
) -> list[list[Translation]]:
    """Write texts for images; return the n_best texts of each, best first.

    A text does not depend on the other images.

    Args:
        model: a captioner with the Step protocol.
        tokenizer: with a token for each language.
        pixels: a set, or pixels (image, channel, height, width), 0..255, and their preprocessing.
        wanted: for each text, the index of its image and its language.
        decode: the decoding options.
        n_best: number of texts per image; raises the number of beams if necessary.
        seed: of sampling; a sample depends only on the seed, the image and the language.
        details: describe the tokens of each text.

    Raises:
        DataError: a language that the model does not write.
        UsageError: invalid banned tokens, or a coverage penalty for a model without attention.
    """
    assert isinstance(model, Step)
    ids: Any = special_ids(model)
    rows, preprocessing = (pixels, pixels.preprocessing) if isinstance(pixels, Pixels) else pixels
    most = int(getattr(ids, "token_limit", LONGEST * 8))
    prefixes = [language_prefix(tokenizer, language) for _, language in wanted]
    given = 1 if tokenizer.languages else 0
    check_search(decode, prefixes, [], vocabulary=len(tokenizer), end=ids.end)
    limit = decode.max_length or max(LONGEST, decode.min_length + 1)
    planned = partial(plan, decode, limit=limit, most=most, n_best=n_best, max_loop=decode.max_loop)
    jobs = [planned(number, prefix, prefix=prefix) for number, prefix in enumerate(prefixes)]
    device = next(model.parameters()).device
    results: list[list[Translation]] = [[] for _ in wanted]
    for batch in batches(jobs):
        part = rows[np.array([wanted[job.number][0] for job in batch])]
        keyed = [
            replace(job, key=(crc32(image.numpy().tobytes()), *job.key))
            for job, image in zip(batch, part, strict=True)
        ]
        images = preprocessing.normalise(part.to(device))
        real = partial(_everything, model, images)
        found = search(
            model, images, keyed, decode, ids, tokenizer, n_best, seed, real=real, given=given
        )
        for job, hypotheses in zip(batch, found, strict=True):
            # Without the tokens that were given: their log-probability is 0.
            written = [
                replace(
                    each,
                    tokens=each.tokens[given:],
                    token_log_probabilities=each.token_log_probabilities[given:],
                )
                for each in hypotheses
            ]
            texts = tokenizer.decode([hypothesis.tokens for hypothesis in written])
            results[job.number] = [
                Translation.of(h, text, describe(tokenizer, text, h) if details else None)
                for text, h in zip(texts, written, strict=True)
            ]
    return results


def _everything(model: nn.Module, images: Tensor) -> Tensor:
    """Mask of the parts of images: nothing is padding."""
    memory: Tensor = model.encode(images)  # type: ignore[operator]
    return torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device)
