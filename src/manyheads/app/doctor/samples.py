"""A few batches of a run's data, as training and as validation saw them.

Everything here is small: some hundred examples, with the plain loss (no smoothing,
no second pass, no augmentation), so that training and validation data are measured alike.
"""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.app.doctor.patient import Patient
from manyheads.app.prepare import language_examples
from manyheads.app.recipe import (
    ClassifyRecipe,
    FillRecipe,
    GenerateRecipe,
    ReconstructRecipe,
    TagRecipe,
    TranslateRecipe,
)
from manyheads.app.sentences import training_sentences
from manyheads.app.sources import corpus_split, image_splits, training_corpus
from manyheads.data.augment import Augmentation
from manyheads.data.images import ImageSet
from manyheads.data.monolingual import Sentences
from manyheads.data.streamed import StreamedCorpus
from manyheads.data.text import Corpus
from manyheads.data.tokenizer import Tokenizers
from manyheads.models.vit import VitConfig
from manyheads.streams import generator
from manyheads.tasks.classify import ClassifyTask, all_answers
from manyheads.tasks.decoding import SpecialIds
from manyheads.tasks.reconstruct import ReconstructTask
from manyheads.tasks.tag import Spacing
from manyheads.tasks.tokenwise import Examples, TokenTask, answers
from manyheads.tasks.translate import TranslateTask
from manyheads.train.task import Task

TEXTS = 200  # sentences or pairs of each split
PICTURES = 500


@dataclass(frozen=True, kw_only=True)
class Samples:
    """What every kind of run has: its splits, and tasks over a part of each."""

    train: Task[Any]
    valid: Task[Any]
    sizes: tuple[int, int]  # of the samples
    validation: int  # all validation examples there are


@dataclass(frozen=True, kw_only=True)
class PairSamples(Samples):
    """Of a translator."""

    corpora: tuple[Corpus | StreamedCorpus, Corpus]
    few: tuple[Corpus, Corpus]
    tokenizers: Tokenizers
    mismatched: tuple[Task[Any], Task[Any]]  # every target with the source of another


@dataclass(frozen=True, kw_only=True)
class LineSamples(Samples):
    """Of a language model or a tagger."""

    lines: tuple[Sentences, Sentences]
    few: tuple[Examples, Examples]
    classes: tuple[str, ...]  # of a tagger


@dataclass(frozen=True, kw_only=True)
class PictureSamples(Samples):
    """Of what learns from pictures."""

    images: tuple[ImageSet, ImageSet]
    few: tuple[ImageSet, ImageSet]


def read_samples(patient: Patient) -> Samples:
    """Read some of a run's data.

    Raises:
        ManyheadsError: they are not there, or cannot be used.
    """
    recipe = patient.recipe
    if isinstance(recipe, TranslateRecipe):
        return _pairs(patient, recipe)
    if isinstance(recipe, ClassifyRecipe | ReconstructRecipe):
        return _pictures(recipe)
    return _lines(patient, recipe)


def mean_loss(model: nn.Module, task: Task[Any]) -> float:
    """Measure the mean loss of a task's training data, which here are a sample."""
    total, weight = 0.0, 0.0
    with torch.inference_mode():
        for batch in task.load(0, task.plan(0)):
            loss = task.loss(model, batch)
            total += float(loss.sum)
            weight += loss.weight
    return total / weight


def predictions(model: nn.Module, task: Task[Any]) -> tuple[Tensor, Tensor] | None:
    """Return what a model answers to a sample, and what would be right; None if it does not choose.

    Returns:
        Log-probabilities or logits (example, class), and classes (example,).
    """
    if isinstance(task, ClassifyTask):
        if task.train.multi_label:
            return None
        return all_answers(model, task.pixels), torch.from_numpy(task.train.labels)
    if isinstance(task, TokenTask):
        found = list(answers(model, task.train, task.config.max_tokens))
        return torch.cat([each for _, each in found]), torch.cat([b.wanted for b, _ in found])
    return None


def _pairs(patient: Patient, recipe: TranslateRecipe) -> PairSamples:
    corpus, valid = training_corpus(recipe.data), corpus_split("valid", recipe.data)
    few = _some_pairs(corpus), _some_pairs(valid)
    config = replace(recipe.train, label_smoothing=0.0, r_drop=0.0)
    tokenizers = patient.tokenizers()

    def task(pairs: Corpus) -> TranslateTask:
        return TranslateTask(
            pairs,
            pairs,
            tokenizers,
            config,
            recipe.evaluate,
            seed=recipe.seed,
            ids=cast(SpecialIds, recipe.config()),
            language=recipe.data.target,
        )

    return PairSamples(
        train=task(few[0]),
        valid=task(few[1]),
        sizes=(len(few[0]), len(few[1])),
        validation=len(valid),
        corpora=(corpus, valid),
        few=few,
        tokenizers=tokenizers,
        mismatched=(task(_mismatched(few[0])), task(_mismatched(few[1]))),
    )


def _some_pairs(corpus: Corpus | StreamedCorpus) -> Corpus:
    """Take some pairs; of a corpus on disk, one of each thousand from the front."""
    if isinstance(corpus, Corpus):
        chosen = spread(len(corpus), TEXTS)
        pairs = [(corpus.source[index], corpus.target[index]) for index in chosen]
        numbers = [corpus.lines[i] if corpus.lines else i + corpus.first_line for i in chosen]
    else:
        kept = islice(enumerate(corpus.pairs(), 1), 0, 1000 * TEXTS, 1000)
        found = list(kept)
        numbers, pairs = [number for number, _ in found], [pair for _, pair in found]
    return Corpus([s for s, _ in pairs], [t for _, t in pairs], corpus.origin, lines=numbers)


def _mismatched(pairs: Corpus) -> Corpus:
    """Give every target the source of another pair, half the sample away."""
    half = len(pairs) // 2
    return replace(pairs, source=[*pairs.source[half:], *pairs.source[:half]])


def _lines(patient: Patient, recipe: GenerateRecipe | FillRecipe | TagRecipe) -> LineSamples:
    splits = training_sentences(recipe.data)
    first, second = (_some_lines(each) for each in splits)
    few: tuple[Examples, Examples]
    if isinstance(recipe, TagRecipe):
        characters, longest = patient.characters(), recipe.train.max_length
        few = Spacing(first, characters, longest), Spacing(second, characters, longest)
    else:
        tokenizer = patient.tokenizers().target
        few = tuple(language_examples(recipe, each, tokenizer) for each in (first, second))  # type: ignore[assignment]
    config = replace(recipe.train, label_smoothing=0.0)

    def task(examples: Examples) -> TokenTask:
        return TokenTask(examples, examples, config, lambda *_: {}, seed=recipe.seed)

    return LineSamples(
        train=task(few[0]),
        valid=task(few[1]),
        sizes=(len(first), len(second)),
        validation=len(splits[1]),
        lines=splits,
        few=few,
        classes=("together", "space") if isinstance(recipe, TagRecipe) else (),
    )


def _some_lines(sentences: Sentences) -> Sentences:
    chosen = spread(len(sentences), TEXTS)
    return Sentences([sentences.lines[index] for index in chosen], sentences.origin)


def _pictures(recipe: ClassifyRecipe | ReconstructRecipe) -> PictureSamples:
    images = image_splits(recipe)
    few = (
        images[0].select(spread(len(images[0]), PICTURES)),
        images[1].select(spread(len(images[1]), PICTURES)),
    )
    task: Any = _classify if isinstance(recipe, ClassifyRecipe) else _reconstruct
    return PictureSamples(
        train=task(recipe, few[0]),
        valid=task(recipe, few[1]),
        sizes=(len(few[0]), len(few[1])),
        validation=len(images[1]),
        images=images,
        few=few,
    )


def _classify(recipe: ClassifyRecipe, images: ImageSet) -> ClassifyTask:
    config = replace(recipe.train, label_smoothing=0.0, class_weights=None)
    return ClassifyTask(images, images, recipe.image, Augmentation(), config, seed=recipe.seed)


def _reconstruct(recipe: ReconstructRecipe, images: ImageSet) -> ReconstructTask:
    config = recipe.config()
    assert isinstance(config, VitConfig)
    return ReconstructTask(
        images,
        images,
        recipe.image,
        Augmentation(),
        recipe.train,
        config.patch,
        seed=recipe.seed,
    )


def spread(count: int, wanted: int) -> np.ndarray:
    """Choose so many of `count` things; by chance, as every second one may be of one class."""
    chosen = generator(0, "doctor").permutation(count)[:wanted]
    return np.sort(chosen)
