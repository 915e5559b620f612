"""A task of one's own, whole: learn a number for a text.

    python examples/extend/own_task.py
    manyheads train RECIPE --plugin examples/extend/own_task.py
    manyheads evaluate --model FOLDER --plugin examples/extend/own_task.py
    manyheads look FOLDER "seven two one" --plugin examples/extend/own_task.py
    manyheads doctor FOLDER --plugin examples/extend/own_task.py

Data are .tsv files: text, tab, number. The model reads words, lets them see each other, and adds
up what each contributes.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

import manyheads
from manyheads.errors import DataError, UsageError
from manyheads.extend import (
    Answer,
    DataTable,
    EvaluateRequest,
    Explanation,
    LoadOptions,
    LookRequest,
    ModelConfig,
    ModelFolder,
    Pipeline,
    Predictor,
    Prepared,
    Recipe,
    RunInspection,
    Samples,
    Say,
    Score,
    Section,
    ShapeLine,
    TextRequest,
    find_data,
    heading,
    read_json,
    refuse_for_texts,
    scored,
    text_overlay,
    text_view,
    walk,
    write_json,
)
from manyheads.nn import (
    Encoder,
    EncoderBlock,
    FeedForward,
    MultiHeadAttention,
    PreNorm,
    padding_mask,
    start_text,
)
from manyheads.train import Loss, TrainConfig

PAD, UNKNOWN = 0, 1

# --- The recipe: what a user may set -------------------------------------------------------------


class RateData(DataTable):
    """The [data] table: root, train, valid and test are there already."""

    valid: str


@dataclass(frozen=True, kw_only=True)
class RateTrainConfig(TrainConfig):
    """The [train] table: that of every task, and the size of a batch."""

    batch_size: int = 32


class RateRecipe(Recipe):
    """A recipe with task = "rate"."""

    task: Literal["rate"]
    data: RateData
    train: RateTrainConfig = RateTrainConfig()

    @property
    def metrics(self) -> Sequence[str]:
        """What validation measures: early stopping may go by it."""
        return ("loss",)


# --- The data ------------------------------------------------------------------------------------


class Texts(NamedTuple):
    """Texts, their numbers, and the hash of the file that they are from."""

    texts: list[str]
    numbers: list[float]
    origin: str
    sha256: str


def read(name: str, root: str | None) -> Texts:
    """Read a .tsv file.

    Raises:
        NotFoundError: there is no such file.
        DataError: a line is not a text, a tab and a number.
    """
    (path,) = find_data(name, root)
    content = path.read_bytes()
    texts, numbers = [], []
    for line, row in enumerate(content.decode("utf-8").splitlines(), 1):
        text, _, number = row.partition("\t")
        try:
            numbers.append(float(number))
        except ValueError:
            raise DataError(f"{path}, line {line}: {number!r} is not a number.") from None
        texts.append(text)
    return Texts(texts, numbers, str(path), hashlib.sha256(content).hexdigest())


def encode(texts: Sequence[str], words: Sequence[str]) -> Tensor:
    """Turn texts into ids of words, padded: (text, word)."""
    ids = {word: index for index, word in enumerate(words, UNKNOWN + 1)}
    rows = [[ids.get(word, UNKNOWN) for word in text.split()] or [UNKNOWN] for text in texts]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


# --- The model -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RaterConfig(ModelConfig):
    """Shape of the model; the data set the vocabulary."""

    tasks: ClassVar[tuple[str, ...]] = ("rate",)

    vocabulary: int = 1000
    dim: int = 32
    layers: int = 1
    heads: int = 2

    def build(self) -> "Rater":
        """Build the model with fresh weights."""
        return Rater(self)


class Rater(nn.Module):
    """Ids of words in, a number a text out."""

    def __init__(self, config: RaterConfig) -> None:
        super().__init__()
        dim = config.dim
        self.embedding = nn.Embedding(config.vocabulary, dim)
        blocks = [
            EncoderBlock(
                MultiHeadAttention(dim, config.heads),
                FeedForward(dim, 2 * dim, nn.GELU()),
                partial(PreNorm, dim),
            )
            for _ in range(config.layers)
        ]
        self.encoder = Encoder(blocks, nn.LayerNorm(dim))
        self.share = nn.Linear(dim, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Add up what the words contribute: (text, word) -> (text,)."""
        return self.contributions(tokens).sum(dim=1)

    def contributions(self, tokens: Tensor) -> Tensor:
        """Say what each word contributes: (text, word) -> (text, word)."""
        start_text()  # tells an open recorder that the tokens are not those of an image
        x = self.encoder(self.embedding(tokens), padding_mask(tokens, PAD))
        return self.share(x).squeeze(-1) * (tokens != PAD)


# --- What the training loop asks ------------------------------------------------------------------


@dataclass(frozen=True)
class RateBatch:
    """Some texts as ids of words, and their numbers."""

    tokens: Tensor
    numbers: Tensor
    indices: np.ndarray

    @property
    def units(self) -> int:
        """The number of texts."""
        return len(self.indices)


class RateTask:
    """Batches, loss and validation: `manyheads.train.Task`."""

    unit = "texts"

    def __init__(
        self, train: Texts, valid: Texts, words: list[str], config: RateTrainConfig, seed: int
    ) -> None:
        self.train = train
        self.valid = valid
        self.words = words
        self.config = config
        self.seed = seed

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[np.ndarray]:
        """Shuffle by seed and epoch alone, so that a run can be resumed; a rank takes its part."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.train.texts))
        parts = range(0, len(order), self.config.batch_size)
        return [order[first : first + self.config.batch_size][rank::world] for first in parts]

    def load(self, epoch: int, batches: Sequence[np.ndarray]) -> Iterator[RateBatch]:
        """Make the planned batches."""
        for indices in batches:
            tokens = encode([self.train.texts[i] for i in indices], self.words)
            yield RateBatch(tokens, torch.tensor(self.train.numbers)[indices], indices)

    def loss(self, model: nn.Module, batch: RateBatch) -> Loss:
        """Sum the squared errors."""
        device = next(model.parameters()).device
        error = model(batch.tokens.to(device)) - batch.numbers.to(device)
        return Loss(error.square().sum(), float(batch.units), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Measure the mean squared error on the validation data."""
        numbers = rate(model, self.valid.texts, self.words)
        return {"loss": float(np.mean(np.square(numbers - np.array(self.valid.numbers))))}

    def describe(self, batch: RateBatch) -> str:
        """Name lines, for messages."""
        return f"{self.train.origin}, lines {', '.join(str(i + 1) for i in batch.indices[:8])}"


@torch.inference_mode()
def rate(model: nn.Module, texts: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """Give each text its number."""
    tokens = encode(texts, words).to(next(model.parameters()).device)
    return model(tokens).float().cpu().numpy()


# --- The pipeline: the task as a whole ------------------------------------------------------------


class RateRequest(TextRequest):
    """Give texts their numbers; what is asked besides `texts` would be more fields."""


class RateAnswer(Answer):
    """The number of one text."""

    text: str
    number: float


class TextRater(Predictor):
    """A stored model: call it with a text."""

    request = RateRequest

    def __init__(self, folder: ModelFolder, options: LoadOptions) -> None:
        super().__init__(folder, options)
        self.words: list[str] = read_json(folder.path / "words.json")

    def __call__(self, text: str) -> float:
        """Give a text its number."""
        return float(self.rate([text])[0])

    def respond(self, request: RateRequest) -> list[RateAnswer]:
        """Answer a request: `answer` has checked that it is one of these."""
        numbers = self.rate(request.texts).tolist()
        return [
            RateAnswer(text=text, number=number)
            for text, number in zip(request.texts, numbers, strict=True)
        ]

    def tokens(self, text: str) -> Tensor:
        """Encode one text: (1, word)."""
        return encode([text], self.words).to(next(self.model.parameters()).device)

    def rate(self, texts: Sequence[str]) -> np.ndarray:
        """Give several texts their numbers."""
        with self.engine.running():
            return rate(self.model, texts, self.words)


class RatePipeline(Pipeline[RateRecipe, TextRater]):
    """Texts with numbers in, a rater out."""

    task = "rate"
    recipe = RateRecipe
    predictor = TextRater
    files = ("words.json",)

    def prepare(self, recipe: RateRecipe, out: Path, say: Say) -> Prepared:
        """Read the data; list the words, or take those of the run that is resumed."""
        train, valid = (
            read(name, recipe.data.root) for name in (recipe.data.train, recipe.data.valid)
        )
        stored = out / "words.json"
        known = sorted({word for text in train.texts for word in text.split()})
        words: list[str] = read_json(stored) if stored.exists() else known
        say(f"{len(train.texts):,} texts, {len(words):,} words")
        return Prepared(
            RateTask(train, valid, words, recipe.train, recipe.seed),
            recipe.config(vocabulary=UNKNOWN + 1 + len(words)),
            lambda folder: write_json(folder / "words.json", words),
            {"data": train.sha256 + valid.sha256},
        )

    def evaluate(self, predictor: TextRater, request: EvaluateRequest) -> dict[str, Any]:
        """Measure the mean absolute error."""
        data = cast(RateRecipe, predictor.folder.recipe).data
        name = request.data or data.split_name(request.split)
        if name is None:
            raise UsageError(f"The recipe names no split {request.split!r}.")
        texts = read(name, data.root)
        error = np.abs(predictor.rate(texts.texts) - np.array(texts.numbers)).mean()
        scores = {"error": Score(float(error), "mean absolute error")}
        head = heading(texts.origin, [texts.sha256], request, data)
        return head | {"lines": len(texts.texts)} | scored(scores)

    def look(self, predictor: TextRater, request: LookRequest) -> Explanation:
        """Show which word attends to which, and what each of them contributes."""
        text = refuse_for_texts(predictor, request)
        words = text.split()
        with torch.inference_mode(), manyheads.record() as trace:
            contributions = cast(Rater, predictor.model).contributions(predictor.tokens(text))
        number = f"{contributions.sum():.1f}"
        view = text_view(trace, source=words, output=[number], probabilities=[1.0])
        overlay = text_overlay(
            "contribution",
            "what each word adds to the number",
            contributions.cpu(),
            rows=[number],
            columns=words,
            signed=True,
        )
        told = {"text": text, "answer": number}
        return Explanation(told, replace(view, overlays=[overlay]))

    def shapes(self, predictor: TextRater, given: str) -> list[ShapeLine]:
        """Walk through one pass over a text."""
        tokens = predictor.tokens(given)
        with torch.inference_mode():
            return walk(predictor.model, lambda: predictor.model(tokens))

    def samples(self, recipe: RateRecipe, run: RunInspection) -> Samples:
        """Take some texts of both splits, for `doctor`."""
        words: list[str] = read_json(run.path / "words.json")

        def task(texts: Texts) -> RateTask:
            few = texts._replace(texts=texts.texts[:100], numbers=texts.numbers[:100])
            return RateTask(few, few, words, recipe.train, recipe.seed)

        train, valid = (
            read(name, recipe.data.root) for name in (recipe.data.train, recipe.data.valid)
        )
        tasks = task(train), task(valid)
        return Samples(
            train=tasks[0],
            valid=tasks[1],
            sizes=(len(tasks[0].train.texts), len(tasks[1].train.texts)),
            validation=len(valid.texts),
        )

    def card(self, folder: ModelFolder) -> Section:
        """Say in the folder's README what the model does, and how it is used."""
        return Section("Gives a text a number.", f"manyheads.load({folder.name!r})('a text')")


manyheads.register_preset("rater-tiny", RaterConfig())
manyheads.register_task(RatePipeline())

# --- Using it -------------------------------------------------------------------------------------

RECIPE = """
task = "rate"

[data]
train = "sums/train.tsv"
valid = "sums/valid.tsv"

[model]
preset = "rater-tiny"

[train]
steps = 150
learning_rate = 1e-2
warmup = 10
validate_every = 50
threads = 1
"""


def write_sums(folder: Path) -> Path:
    """Write sentences of digits with their sums, and the recipe."""
    digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    random = np.random.default_rng(1)
    for split, count in (("train", 300), ("valid", 50)):
        drawn = [random.integers(0, 10, random.integers(1, 5)) for _ in range(count)]
        lines = [f"{' '.join(digits[n] for n in row)}\t{row.sum()}\n" for row in drawn]
        path = folder / "sums" / f"{split}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
    recipe = folder / "sums.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    return recipe


def main() -> None:
    """Train, measure and use the model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recipe = write_sums(folder)
        line = manyheads.train(recipe, f"data.root={folder}", out=folder / "run")
        print(f"mean absolute error: {line['value']:.2f}")
        rater = manyheads.load(folder / "run")
        print(f"seven two one: {rater('seven two one'):.1f}")
        (answer,) = rater.answer(RateRequest(texts=("one two",)))
        print(answer.to_json())


if __name__ == "__main__":
    main()
