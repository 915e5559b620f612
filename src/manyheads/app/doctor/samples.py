"""A few batches of a run's data, as training and as validation read them.

Some hundred examples, with the plain loss (no smoothing, no second pass, no augmentation), so that
training and validation data are measured alike.
Pipelines make them (`Pipeline.samples`); what differs between kinds of data is a method here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from manyheads.app.data.sentences import training_sentences
from manyheads.app.data.sources import image_splits
from manyheads.app.data.tables import ImageRecipe, SentenceData
from manyheads.app.doctor import image_leakage, text_leakage
from manyheads.app.doctor.finding import Finding, cut
from manyheads.app.doctor.spread import spread
from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.data.text.corpus import Corpus
from manyheads.data.text.sentences import Sentences
from manyheads.data.text.streamed_corpus import StreamedCorpus
from manyheads.tasks.classify import predict_all_logits
from manyheads.tasks.tokenwise import predict_batches
from manyheads.train.task import Task

TEXTS = 200  # sentences or pairs of each split
IMAGES = 500
# Of the loss of the best answer that does not depend on the input: what is closer has learned
# nothing, but for noise and a few easy examples.
NOTHING = 0.95
HALF = 0.5  # of the same: a training loss below this was learned well
# Nats a token that the right source gains over a wrong one: 5% of perplexity. Shipped translators
# gain 3.4 to 7.1.
SOURCE_GAIN = 0.05
HEART_GAIN = 0.5


class Learned(NamedTuple):
    """Losses on samples of training and validation data, and without the input."""

    train: float
    valid: float
    # The loss without the input: with another input, or the entropy of the right answers.
    blind_train: float
    blind_valid: float

    @property
    def gains(self) -> tuple[float, float]:
        """The gain of the input in nats, in training and in validation data."""
        return self.blind_train - self.train, self.blind_valid - self.valid


class Examined(NamedTuple):
    """Findings of one examination, and what was looked at or could not be."""

    findings: list[Finding]
    looked_at: Sequence[str] = ()
    not_looked_at: Sequence[str] = ()


# Examines what a model writes: (model, step, finished).
Write = Callable[[nn.Module, int, bool], Examined]
# The same, of a sample of sentences: (model, sentences, step).
LineWriter = Callable[[nn.Module, Sentences, int], Examined]
Predictions = tuple[Tensor, Tensor]  # log-probabilities or logits (example, class), and classes


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Splits of a run, and tasks over a part of each."""

    train: Task[Any]
    valid: Task[Any]
    sizes: tuple[int, int]  # of the samples
    validation: int  # number of all validation examples
    write: Write | None = None
    labelled: bool = False  # images with classes: features of the last layer can be compared

    # What `Learned` compares with.
    baseline: ClassVar[str] = "of the best answer that does not depend on the input"
    # More remedy against one answer for all, and its settings.
    remedy: ClassVar[tuple[str, dict[str, object]]] = (".", {})

    def predictions(self, model: nn.Module, task: Task[Any]) -> Predictions | None:
        """Return predictions for a task's training data; None if it has no classes."""
        return None

    def blind_losses(self, model: nn.Module) -> list[float] | None:
        """Return the losses without the input: here the entropies of the right answers, in nats."""
        entropies = []
        for task in (self.train, self.valid):
            found = self.predictions(model, task)
            if found is None:
                return None
            _, counts = found[1].unique(return_counts=True)
            shares = counts / counts.sum()
            entropies.append(float(-(shares * shares.log()).sum()))
        return entropies

    def nothing_learned(self, learned: Learned) -> bool:
        """Tell whether answers do not depend on the input, not even in training data."""
        return 0 < NOTHING * learned.blind_train <= learned.train

    def memorised(self, learned: Learned) -> bool:
        """Tell whether training data are known by heart, and validation data not at all."""
        return learned.train <= HALF * learned.blind_train and (
            learned.valid >= learned.blind_valid > 0
        )

    def examples(self) -> list[str]:
        """Show a few training examples with their answers."""
        return []

    def class_name(self, number: int) -> str:
        """Name a class."""
        return f"token {number}"

    def leaks(self) -> Examined:
        """Look for leaks of the answers, and of validation data into training."""
        return Examined([])

    def leaks_in_texts(self, *findings: Finding) -> Examined:
        """Report leaks in texts."""
        looked_at = f"leaks: all {self.validation:,} validation texts, whether training has them"
        return Examined(list(findings), [looked_at])


@dataclass(frozen=True, kw_only=True)
class PairSamples(Samples):
    """Of a translator, which is compared with itself reading the source of another pair."""

    corpora: tuple[Corpus | StreamedCorpus, Corpus]
    few: tuple[Corpus, Corpus]
    mismatched: tuple[Task[Any], Task[Any]]  # every target with the source of another

    baseline: ClassVar[str] = "with the source of another pair"

    def blind_losses(self, model: nn.Module) -> list[float]:
        """Return the losses with the source of another pair."""
        return [mean_loss(model, task) for task in self.mismatched]

    def nothing_learned(self, learned: Learned) -> bool:
        """Tell whether the right source helps no more than a wrong one."""
        return max(learned.gains) < SOURCE_GAIN

    def memorised(self, learned: Learned) -> bool:
        """Tell whether the source helps in training data only."""
        seen, new = learned.gains
        return seen >= HEART_GAIN and new < SOURCE_GAIN

    def examples(self) -> list[str]:
        """Show pairs."""
        return [f"{cut(s, 50)} → {cut(t, 50)}" for s, t in list(self.few[0].pairs())[:3]]

    def leaks(self) -> Examined:
        """Look for validation pairs in the training data, and translations in their sources."""
        found = text_leakage.pairs_seen_before(*self.corpora)
        return self.leaks_in_texts(*found, *text_leakage.target_in_source(self.few[0]))


@dataclass(frozen=True, kw_only=True)
class LineSamples(Samples):
    """Of a language model or a tagger."""

    lines: tuple[Sentences, Sentences]
    classes: tuple[str, ...] = ()  # of a tagger

    def predictions(self, model: nn.Module, task: Any) -> Predictions:
        """Return log-probabilities of tokens."""
        found = list(predict_batches(model, task.train, task.config.max_tokens))
        return torch.cat([each for _, each in found]), torch.cat([b.targets for b, _ in found])

    def examples(self) -> list[str]:
        """Show lines."""
        return [cut(line) for line in self.lines[0].lines[:3]]

    def class_name(self, number: int) -> str:
        """Name a tag or a token."""
        return repr(self.classes[number]) if self.classes else super().class_name(number)

    def leaks(self) -> Examined:
        """Look for validation lines in the training data."""
        return self.leaks_in_texts(*text_leakage.lines_seen_before(*self.lines))


@dataclass(frozen=True, kw_only=True)
class ImageSamples(Samples):
    """Of an image model; one without labels has no classes to predict."""

    images: tuple[ImageSet, ImageSet]
    few: tuple[ImageSet, ImageSet]
    preprocessing: Preprocessing
    held_out: bool  # the validation images were drawn from the training images

    remedy: ClassVar[tuple[str, dict[str, object]]] = (
        "; where one class is most of the data, weigh the classes.",
        {"train.class_weights": "balanced"},
    )

    def predictions(self, model: nn.Module, task: Any) -> Predictions | None:
        """Return logits of classes; None of several classes per image, or without labels."""
        if not self.labelled or task.train.multi_label:
            return None
        return predict_all_logits(model, task.pixels), torch.from_numpy(task.train.labels)

    def examples(self) -> list[str]:
        """Show names of images with their classes."""
        images = self.few[0]
        if images.multi_label:
            return []
        first = zip(images.names[:3], images.labels[:3], strict=True)
        return [f"{name} is {images.classes[int(label)]}" for name, label in first]

    def class_name(self, number: int) -> str:
        """Name a class."""
        return repr(self.few[1].classes[number])

    def leaks(self) -> Examined:
        """Look for copies, series, marks and properties of files that tell the class."""
        sample = image_leakage.ImageSample(*self.images)
        found = list(image_leakage.images_seen_before(sample))
        if self.labelled:
            if self.held_out:
                found += image_leakage.series(sample)
            found += image_leakage.mark(sample, self.preprocessing)
        found += image_leakage.file_properties(sample)
        looked_at = (
            f"leaks: {len(sample.train):,} training and {len(sample.valid):,} validation images: "
            "copies, series, marks, files"
        )
        return Examined(found, [looked_at])


def mean_loss(model: nn.Module, task: Task[Any]) -> float:
    """Measure the mean loss of a task's training data, which here are a sample."""
    total, weight = 0.0, 0.0
    with torch.inference_mode():
        for batch in task.load(0, task.plan(0)):
            loss = task.loss(model, batch)
            total += float(loss.sum)
            weight += loss.weight
    return total / weight


def some_pairs(corpus: Corpus | StreamedCorpus) -> Corpus:
    """Take some pairs; of a corpus on disk, one of each thousand from the front."""
    if isinstance(corpus, Corpus):
        chosen = spread(len(corpus), TEXTS)
        pairs = [(corpus.source[index], corpus.target[index]) for index in chosen]
        numbers = [corpus.lines[i] if corpus.lines else i + corpus.first_line for i in chosen]
    else:
        found = list(islice(enumerate(corpus.pairs(), 1), 0, 1000 * TEXTS, 1000))
        numbers, pairs = [number for number, _ in found], [pair for _, pair in found]
    return Corpus([s for s, _ in pairs], [t for _, t in pairs], corpus.origin, lines=numbers)


def mismatched(pairs: Corpus) -> Corpus:
    """Give every target the source of another pair, half the sample away."""
    half = len(pairs) // 2
    return replace(pairs, source=[*pairs.source[half:], *pairs.source[:half]])


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
        Sentences([each.lines[i] for i in spread(len(each), TEXTS)], each.origin) for each in splits
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


def sample_images(
    recipe: ImageRecipe, make: Callable[[ImageSet], Task[Any]], *, labelled: bool
) -> ImageSamples:
    """Take some images of both splits."""
    images = image_splits(recipe)
    train, valid = (each.select(spread(len(each), IMAGES)) for each in images)
    return ImageSamples(
        train=make(train),
        valid=make(valid),
        sizes=(len(train), len(valid)),
        validation=len(images[1]),
        images=images,
        few=(train, valid),
        preprocessing=recipe.image,
        held_out=recipe.data.hold_out > 0,
        labelled=labelled,
    )
