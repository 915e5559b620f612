"""Reading printed lines: the CTC loss, and the rate of wrong characters.

Hangul syllables are read letter by letter (Unicode's decomposition, NFD) and composed again: 67
letters make all 11,172 syllables, so that a syllable may be read that no training text had.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.bounded_numbers import Count
from manyheads.data.batching.batches import Batch
from manyheads.data.batching.buckets import length_buckets, rank_part
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.line_images import padded_width, stack
from manyheads.data.tokenizers.characters import PAD, Characters
from manyheads.decode.ctc import CtcResult, best_path
from manyheads.lens.thumbnail import data_url
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import EXAMPLES, Example, Indices, Loss

METRICS = ("cer", "exact", "loss")
BLANK = PAD


@dataclass(frozen=True, kw_only=True)
class ReadTrainConfig(TrainConfig):
    """The [train] table of line readers."""

    batch_width: Count = 8192  # pixels of a batch: its lines times the width of the widest


class LineSet(Protocol):
    """Images of lines with their texts; another image of each may be drawn in every epoch."""

    @property
    def texts(self) -> Sequence[str]:
        """The text of each line."""

    def widths(self, epoch: int) -> np.ndarray:
        """Return the width of each line in an epoch."""

    def pixels(self, index: int, epoch: int) -> np.ndarray:
        """Return a line in an epoch: (height, width), 0..255, dark on light."""

    def describe(self, index: int, epoch: int) -> str:
        """Name a line for messages."""


@dataclass(frozen=True)
class LineBatch(Batch):
    """Lines of one width, and the ids of their texts."""

    images: Tensor  # (line, 1, height, width)
    targets: Tensor  # (all ids,): line by line
    lengths: Tensor  # (line,) ids of each
    indices: np.ndarray
    epoch: int

    @property
    def units(self) -> int:
        """The number of lines."""
        return len(self.indices)


@dataclass(eq=False)
class ReadTask:
    """A Task for the training loop."""

    train: LineSet
    valid: LineSet
    characters: Characters
    config: ReadTrainConfig
    _: KW_ONLY
    seed: int
    examples: Sequence[Example] = ()
    unit = "lines"

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[Indices]:
        """Bucket the lines by width."""
        steps = np.array([padded_width(int(width)) for width in self.train.widths(epoch)])
        batches = length_buckets(steps, steps, self.config.batch_width, seed=self.seed, epoch=epoch)
        return rank_part(batches, rank, world)

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[LineBatch]:
        """Draw or read the planned lines, and pad those of a batch to one width."""
        for indices in batches:
            lines = [self.train.pixels(int(index), epoch) for index in indices]
            texts = [self.train.texts[index] for index in indices]
            targets, lengths = ids_of(self.characters, texts)
            yield LineBatch(stack(lines), targets, lengths, indices, epoch)

    def loss(self, model: nn.Module, batch: LineBatch) -> Loss:
        """Sum the CTC loss over the lines; its mean is that of a letter."""
        batch = batch.to(next(model.parameters()).device)
        loss = ctc_loss(model(batch.images), batch.targets, batch.lengths)
        return Loss(loss, float(batch.lengths.sum()), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Read the validation lines."""
        measured = measure(model, self.characters, self.valid)
        self.examples = [
            Example(
                self.valid.describe(n, 0),
                measured.texts[n],
                self.valid.texts[n],
                data_url(torch.from_numpy(self.valid.pixels(n, 0))),
            )
            for n in evenly_spaced(len(measured.texts), EXAMPLES).tolist()
        ]
        return measured.scores

    def describe(self, batch: LineBatch) -> str:
        """Name the lines of a batch."""
        return ", ".join(self.train.describe(int(each), batch.epoch) for each in batch.indices)


def letters(text: str) -> str:
    """Decompose a text: a Hangul syllable into its two or three letters."""
    return unicodedata.normalize("NFD", text)


def encode(characters: Characters, text: str) -> list[int]:
    """Turn a text into ids, Hangul letter by letter."""
    return characters.encode(letters(text))


def ids_of(characters: Characters, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return the ids of texts, line by line, and how many each has."""
    ids = [encode(characters, text) for text in texts]
    return torch.tensor([each for line in ids for each in line]), torch.tensor(list(map(len, ids)))


class ReadCharacter(NamedTuple):
    """A character, and its probability given the image: the product of those of its letters."""

    character: str
    probability: float


def spell(characters: Characters, result: CtcResult) -> list[ReadCharacter]:
    """Turn ids into characters: letters that make one Hangul syllable are composed."""
    spelled: list[ReadCharacter] = []
    decoded = map(characters.decode, zip(result.ids))
    for letter, probability in zip(decoded, result.probabilities, strict=True):
        if spelled:
            whole = unicodedata.normalize("NFC", spelled[-1].character + letter)
            if len(whole) == 1:
                spelled[-1] = ReadCharacter(whole, spelled[-1].probability * probability)
                continue
        spelled.append(ReadCharacter(letter, probability))
    return spelled


def decode(characters: Characters, ids: Sequence[int]) -> str:
    """Turn ids into a text, with Hangul syllables composed."""
    return unicodedata.normalize("NFC", characters.decode(ids))


def ctc_loss(logits: Tensor, targets: Tensor, lengths: Tensor) -> Tensor:
    """Sum -log p(text | image) over lines, (line, column, vocabulary).

    A line with fewer columns than its text needs has an infinite loss, which counts as 0.
    """
    scores = F.log_softmax(logits.float(), dim=-1).transpose(0, 1)
    columns = torch.full_like(lengths, logits.shape[1])
    return F.ctc_loss(
        scores, targets, columns, lengths, blank=BLANK, reduction="sum", zero_infinity=True
    )


MOST_WIDTH = 1 << 14  # pixels of the lines that are read at once


def by_width(widths: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Group lines of equal padded width; yield the width and the lines of each batch.

    The groups of a line depend on its own width alone, so what is read in it does too.
    """
    groups: dict[int, list[int]] = {}
    for index, width in enumerate(widths):
        groups.setdefault(padded_width(width), []).append(index)
    for width, members in sorted(groups.items()):
        size = max(1, MOST_WIDTH // width)
        for first in range(0, len(members), size):
            yield width, members[first : first + size]


@torch.inference_mode()
def predict_logits(model: nn.Module, lines: Sequence[np.ndarray]) -> list[Tensor]:
    """Return the log-probabilities (column, vocabulary) of each line."""
    device = next(model.parameters()).device
    logits_of: dict[int, Tensor] = {}
    for width, members in by_width([line.shape[1] for line in lines]):
        logits = model(stack([lines[index] for index in members], width).to(device))
        logits_of |= zip(members, F.log_softmax(logits.float(), dim=-1).cpu(), strict=True)
    return [logits_of[index] for index in range(len(lines))]


class Measured(NamedTuple):
    """How well the lines of a set are read."""

    scores: dict[str, float]  # METRICS
    texts: list[str]  # what was read
    edits: np.ndarray  # (line,) characters to insert, delete or replace
    lengths: np.ndarray  # (line,) characters of the true text


def measure(model: nn.Module, characters: Characters, lines: LineSet) -> Measured:
    """Read a set greedily: character error rate and share of exact lines in percent, and loss."""
    texts = [""] * len(lines.texts)
    loss, letters = 0.0, 0
    device = next(model.parameters()).device
    for width, members in by_width(lines.widths(0).tolist()):
        images = stack([lines.pixels(index, 0) for index in members], width)
        with torch.inference_mode():
            logits = model(images.to(device)).float().cpu()
            targets, lengths = ids_of(characters, [lines.texts[index] for index in members])
            loss += ctc_loss(logits, targets, lengths).item()
        letters += int(lengths.sum())
        for index, scores in zip(members, logits.log_softmax(dim=-1), strict=True):
            texts[index] = decode(characters, best_path(scores, BLANK).ids)
    wanted = [plain(text) for text in lines.texts]
    edits = np.array([edit_distance(a, b) for a, b in zip(map(plain, texts), wanted, strict=True)])
    true = np.array([len(text) for text in wanted])
    scores = {
        "cer": 100 * edits.sum() / max(true.sum(), 1),
        "exact": 100 * float((edits == 0).mean()),
        "loss": loss / max(letters, 1),
    }
    return Measured(scores, texts, edits, true)


def plain(text: str) -> str:
    """Return a text as it is compared: composed (NFC), one space between words."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def edit_distance(first: str, second: str) -> int:
    """Count the insertions, deletions and replacements of characters (Levenshtein 1966)."""
    if first == second:
        return 0
    codes = np.array([ord(each) for each in second], dtype=np.int64)
    places = np.arange(len(second) + 1)
    row = places.copy()
    for number, character in enumerate(first, 1):
        replaced = row[:-1] + (codes != ord(character))
        new = np.concatenate(([number], np.minimum(replaced, row[1:] + 1)))
        # An insertion takes the value on the left plus 1, which may itself be one.
        row = np.minimum.accumulate(new - places) + places
    return int(row[-1])
