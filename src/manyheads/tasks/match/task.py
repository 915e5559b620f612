"""Matching: images and texts that belong together get similar vectors; recall both ways."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Ge, Le
from torch import Tensor, nn

from manyheads.bounded_numbers import Count
from manyheads.data.augment.augment import Augmentation
from manyheads.data.batching.batches import MatchBatch, length_batches, pad
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.images.pixels import ROWS, Pixels, predict_all_logits
from manyheads.data.tokenizers.tokenizer import END, PAD, TextTokenizer
from manyheads.errors import DataError
from manyheads.fit.training_images import CPU, ImageTrainConfig, TrainingImages
from manyheads.generation.special_ids import special_ids
from manyheads.models.matcher import Tower
from manyheads.streams import generator
from manyheads.train.contrastive import CONTRASTS, Contrast
from manyheads.train.device import random_state, set_random_state
from manyheads.train.training_task import Indices, Loss

RANKS = (1, 10)  # recall among so many first answers


@dataclass(frozen=True, kw_only=True)
class MatchTrainConfig(ImageTrainConfig):
    """The [train] table of a matcher."""

    loss: Contrast = "softmax"
    texts: Count = 1  # drawn for each image in each epoch
    # Share of them that are queries, where data.queries names some; the others are any text.
    query_share: Annotated[float, Ge(0), Le(1)] = 0.5
    max_length: Count = 64  # tokens of a text; the rest is cut off
    # Images that are computed together; a larger batch is encoded in parts, without a graph, and
    # once more with the gradients of the loss over the whole of it (Gao et al. 2021). None: all.
    part_size: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.label_smoothing:
            raise ValueError(
                f"label_smoothing is {self.label_smoothing}, but a matcher learns from pairs and "
                "not from labels: leave it out"
            )


class MatchTask(TrainingImages[MatchTrainConfig]):
    """A Task for the training loop; it accumulates gradients itself where a batch has parts."""

    def __init__(
        self,
        train: CaptionedImages,
        valid: CaptionedImages,
        tokenizer: TextTokenizer,
        preprocessing: Preprocessing,
        augmentation: Augmentation,
        config: MatchTrainConfig,
        *,
        seed: int,
        device: torch.device = CPU,
        train_queries: CaptionedImages | None = None,
    ) -> None:
        """Turn the texts into token ids.

        `valid` has the texts that are searched for; `train_queries` has the same of the training
        images, if it is only some of their texts.

        Raises:
            DataError: an image has no text.
        """
        images = train.images, valid.images
        super().__init__(*images, preprocessing, augmentation, config, seed=seed, device=device)
        self.captions = train
        self.tokenizer = tokenizer
        self.queries = queries(valid)
        encoded = tokenizer.encode(train.texts)
        self.tokens = [[*tokens[: config.max_length - 1], END] for tokens in encoded]
        self.languages = _by_language(train)
        self.asked = None if train_queries is None else _asked(train, train_queries)
        without = [n for n, each in enumerate(self.languages) if not each]
        if without:
            raise DataError(
                f"{train.images.origin}: {len(without):,} images have no text: "
                f"{train.images.describe(without)}."
            )
        self.plain = list(map(plain, train.texts))
        self.texts_of = [{self.plain[n] for n in train.captions(i)} for i in range(len(train))]

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[MatchBatch]:
        """Read, augment and normalise the planned images; draw texts for each."""
        augment = self.augmenter(epoch)
        for indices in batches:
            pixels = augment(self.pixels[indices].to(self.device), indices)
            images = self.preprocessing.normalise(pixels)
            drawn = [text for index in indices.tolist() for text in self._texts(index, epoch)]
            own = [self.texts_of[index] for index in indices.tolist()]
            positives = [[self.plain[text] in each for text in drawn] for each in own]
            tokens = pad([self.tokens[text] for text in drawn], PAD)
            yield MatchBatch(images, tokens, torch.tensor(positives, dtype=torch.bool), indices)

    def _texts(self, index: int, epoch: int) -> list[int]:
        """Draw texts of an image for an epoch, first a language: a pure function."""
        draw = generator(self.seed, "captions", epoch, index)
        drawn = []
        for _ in range(self.config.texts):
            languages = self.languages[index]
            if self.asked is not None and draw.random() < self.config.query_share:
                languages = self.asked[index] or languages
            drawn.append(int(draw.choice(languages[int(draw.integers(len(languages)))])))
        return drawn

    def loss(self, model: nn.Module, batch: MatchBatch) -> Loss:
        """Contrast every image of a batch with every text."""
        batch = batch.to(next(model.parameters()).device)
        images, texts = model(batch.images, batch.tokens)
        return self._contrast(model, images, texts, batch)

    def backward(self, model: nn.Module, batch: MatchBatch) -> Loss:
        """Add the gradients of a batch that has several parts (gradient caching)."""
        size = self.config.part_size or len(batch.indices)
        if size >= len(batch.indices):
            return self.loss(model, batch)  # its graph is not too large
        device = next(model.parameters()).device
        batch = batch.to(device)
        count = -(-len(batch.indices) // size)
        parts = list(zip(batch.images.chunk(count), batch.tokens.chunk(count), strict=True))
        states, vectors = [], []
        with torch.no_grad():
            for part in parts:
                states.append(random_state(device))
                vectors.append(model(*part))
        images, texts = (torch.cat(each).requires_grad_() for each in zip(*vectors, strict=True))
        loss = self._contrast(model, images, texts, batch)
        loss.sum.backward()
        assert images.grad is not None
        assert texts.grad is not None
        after = random_state(device)
        grads = zip(images.grad.chunk(count), texts.grad.chunk(count), strict=True)
        for part, state, grad in zip(parts, states, grads, strict=True):
            set_random_state(device, state)  # the same dropout as before
            torch.autograd.backward(model(*part), grad)
        set_random_state(device, after)
        return Loss(loss.sum.detach(), loss.weight, loss.logs)

    def _contrast(self, model: nn.Module, images: Tensor, texts: Tensor, batch: MatchBatch) -> Loss:
        with torch.autocast(images.device.type, enabled=False):  # differences of cosines are small
            matcher: Any = getattr(model, "module", model)  # also where it is wrapped
            scores = matcher.scores(images.float(), texts.float())
            total = CONTRASTS[self.config.loss](scores, batch.positives)
        best = scores.argmax(dim=1)
        right = batch.positives.gather(1, best[:, None]).sum().item()
        return Loss(total, float(len(images)), {"accuracy": 100.0 * right})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Find the validation images by their texts, and their texts by the images."""
        texts = embed_texts(model, self.tokenizer, self.queries.texts, self.config.max_length)
        return recalls(image_vectors(model, self.valid_pixels), texts, self.queries)


def plain(text: str) -> str:
    """Return what two texts have in common that ask for the same."""
    return " ".join(text.casefold().split())


def _by_language(captions: CaptionedImages) -> list[list[list[int]]]:
    """List the numbers of the captions of each image, by language."""
    numbers: list[dict[str, list[int]]] = [{} for _ in range(len(captions))]
    for number, (owner, language) in enumerate(
        zip(captions.owners.tolist(), captions.languages, strict=True)
    ):
        numbers[owner].setdefault(language, []).append(number)
    return [list(each.values()) for each in numbers]


def _asked(captions: CaptionedImages, asked: CaptionedImages) -> list[list[list[int]]]:
    """List the numbers of those captions of each image that are queries, by language."""
    keys, known = _keys(captions), {*_keys(asked)}
    return [
        [chosen for numbers in each if (chosen := [n for n in numbers if keys[n] in known])]
        for each in _by_language(captions)
    ]


def _keys(captions: CaptionedImages) -> list[tuple[int, str, str]]:
    """List image, language and what its text asks for, of each caption."""
    rows = zip(captions.owners.tolist(), captions.languages, captions.texts, strict=True)
    return [(owner, language, plain(text)) for owner, language, text in rows]


def framed(tokens: Sequence[Sequence[int]], ids: Any, longest: int) -> list[list[int]]:
    """Put a start token, if there is one, and the end token around texts, cut to `longest`.

    Texts whose last token is read are padded to that length.
    """
    start = getattr(ids, "start", None)
    front = [] if start is None else [start]
    room = longest - len(front) - 1
    rows = [[*front, *row[:room], ids.end] for row in tokens]
    if getattr(ids, "text_pool", "mean") != "last":
        return rows
    return [row + [ids.pad] * (longest - len(row)) for row in rows]


@dataclass(frozen=True)
class Queries:
    """The different texts of a set, and the images that each belongs to."""

    texts: list[str]
    languages: list[str]
    images: list[set[int]]

    def by_image(self) -> dict[int, set[int]]:
        """List the numbers of the texts of each image that has some."""
        own: dict[int, set[int]] = {}
        for number, images in enumerate(self.images):
            for image in images:
                own.setdefault(image, set()).add(number)
        return own


def queries(captions: CaptionedImages) -> Queries:
    """Collect the different texts of each language."""
    by_text: dict[tuple[str, str], tuple[str, set[int]]] = {}
    for text, (owner, language, wanted) in zip(captions.texts, _keys(captions), strict=True):
        by_text.setdefault((language, wanted), (text, set()))[1].add(owner)
    return Queries(
        [text for text, _ in by_text.values()],
        [language for language, _ in by_text],
        [owners for _, owners in by_text.values()],
    )


def image_tower(model: Any) -> Tower:
    """Return the side of a matcher that turns images into unit vectors."""
    return Tower(model.encode_images, model)


def image_vectors(model: nn.Module, pixels: Pixels) -> Tensor:
    """Return the unit vectors of a set of images: (image, embedding)."""
    return predict_all_logits(image_tower(model), pixels)


@torch.inference_mode()
def embed_texts(
    model: nn.Module, tokenizer: TextTokenizer, texts: Sequence[str], longest: int
) -> Tensor:
    """Return the unit vectors of texts: (text, embedding). Each is the same in any batch."""
    tower: Any = model
    device = next(model.parameters()).device
    ids: Any = special_ids(model)
    tokens = framed(tokenizer.encode(texts), ids, longest)
    vectors_of: dict[int, Tensor] = {}
    for part in length_batches(range(len(tokens)), lambda n: len(tokens[n]), ROWS):
        vectors = tower.encode_texts(pad([tokens[n] for n in part], ids.pad).to(device)).cpu()
        vectors_of |= dict(zip(part, vectors, strict=True))
    return torch.stack([vectors_of[n] for n in range(len(tokens))])


def recalls(vectors: Tensor, texts: Tensor, asked: Queries) -> dict[str, float]:
    """Measure recall in percent: of texts that find one of their images, and the other way.

    Args:
        vectors: of all images that may be found: (image, embedding).
        texts: the vectors of the texts of `asked`: (text, embedding).
        asked: texts, and the images that each belongs to.

    Returns:
        `text_to_image_1`, ... over all texts, `image_to_text_1`, ... over the images that have
        texts; with several languages, the first for each.
    """
    ranks = text_ranks(vectors, texts, asked.images)
    scores = {f"text_to_image_{k}": 100 * float((ranks < k).mean()) for k in RANKS}
    own = asked.by_image()
    back = text_ranks(texts, vectors[list(own)], list(own.values()))
    scores |= {f"image_to_text_{k}": 100 * float((back < k).mean()) for k in RANKS}
    languages = np.array(asked.languages)
    if len(set(asked.languages)) > 1:
        for language in dict.fromkeys(asked.languages):
            part = ranks[languages == language]
            for k in RANKS:
                scores[f"text_to_image_{k}_{language}"] = 100 * float((part < k).mean())
    return scores


def text_ranks(vectors: Tensor, asked: Tensor, right: Sequence[set[int]]) -> np.ndarray:
    """Return for each question how many vectors are nearer than its nearest right one.

    Vectors as near as that one count as nearer, unless they are right too.
    """
    ranks = np.empty(len(asked), dtype=int)
    for first in range(0, len(asked), ROWS):
        scores = asked[first : first + ROWS].numpy() @ vectors.numpy().T
        for row, each in enumerate(scores):
            chosen = np.fromiter(right[first + row], dtype=int)
            best = each[chosen].max()
            ranks[first + row] = int((each >= best).sum() - (each[chosen] >= best).sum())
    return ranks
