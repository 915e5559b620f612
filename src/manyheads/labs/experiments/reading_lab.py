"""M2: read a printed line with CTC, or write its letters with a Transformer decoder."""

import time
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.data.batching.batches import pad
from manyheads.data.images.line_images import stack
from manyheads.data.tokenizers.characters import PAD, Characters
from manyheads.decode.greedy import greedy_search
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import mean, verdict
from manyheads.labs.lab_training import fresh, learn, parameters, training
from manyheads.labs.symbols import widths
from manyheads.models.components import POSITIONS, FeedForwardName, Norm, TokenPositions
from manyheads.models.encoder_decoder import DecoderConfig, EncoderDecoder, decoder
from manyheads.models.line_reader import LineReaderConfig
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.output_head import logits
from manyheads.nn.shapes import Images
from manyheads.recipe_data.caption_data import ReadData
from manyheads.tasks.read import task as reading
from manyheads.tasks.read.printed_lines import LineSource, PrintedLines, SomeLines
from manyheads.train.training_task import Loss

COLUMNS, WRITER = "CTC", "decoder"
ARMS = (COLUMNS, WRITER)


@dataclass(frozen=True, kw_only=True)
class WriterConfig(DecoderConfig):
    """The encoder of a line reader, and a decoder of the same width."""

    tasks = ("read",)

    reader: LineReaderConfig = field(default_factory=LineReaderConfig)
    vocabulary: int = 256
    norm: Norm = "pre"
    activation: FeedForwardName = "gelu"
    positions: TokenPositions = "sinusoidal"

    def build(self) -> "Writer":
        """Build the model with fresh weights."""
        return Writer(self)


class Writer(EncoderDecoder[WriterConfig]):
    """Images of lines in, the next letter out."""

    def __init__(self, config: WriterConfig) -> None:
        super().__init__()
        self.config = config
        self.target_embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=config.pad)
        self.output = Linear(config.dim, config.vocabulary, bias=False)
        self.output.weight = self.target_embedding.weight
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.dropout = Dropout(config.dropout)
        self.decoder = decoder(config)
        initial.xavier(self)
        initial.embeddings(self)
        self.reader = config.reader.build()
        self.reader.output = nn.Identity()  # type: ignore[assignment]

    def forward(
        self, images: Images, target: Int[Tensor, "line letter"]
    ) -> Float[Tensor, "line letter vocabulary"]:
        """Score every next letter (teacher forcing)."""
        return self.write(target, self.encode(images), None, None, logits)

    def encode(self, source: Images) -> Float[Tensor, "line column dim"]:
        """Return a vector a column; white columns behind a line are columns too."""
        return self.reader(source)

    def memory_mask(self, source: Images) -> None:
        """Hide nothing, as the line reader does."""


class WriteTask(reading.ReadTask):
    """The task of the line reader, with the loss and the search of a decoder.

    The ids behind those of the characters are the start and the end of a text.
    """

    def loss(self, model: nn.Module, batch: reading.LineBatch) -> Loss:
        """Sum the cross-entropy over the letters and the end; weigh it as CTC's is."""
        start, end = len(self.characters), len(self.characters) + 1
        texts = [[start, *ids.tolist(), end] for ids in batch.targets.split(batch.lengths.tolist())]
        target = pad(texts, PAD)
        scores = model(batch.images, target[:, :-1]).flatten(0, 1).float()
        loss = F.cross_entropy(scores, target[:, 1:].flatten(), ignore_index=PAD, reduction="sum")
        return Loss(loss, float(batch.lengths.sum()), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Write the validation lines greedily: the character error rate, in percent."""
        assert isinstance(model, Writer)
        start, end = len(self.characters), len(self.characters) + 1
        edits, count = 0, 0
        for width, members in reading.by_width(self.valid.widths(0).tolist()):
            images = stack([self.valid.pixels(index, 0) for index in members], width)
            columns = width // model.config.reader.column_width  # as many letters as CTC may read
            outputs = greedy_search(model, images, [columns] * len(members), start=start, end=end)
            for index, hypothesis in zip(members, outputs, strict=True):
                ids = [token for token in hypothesis.tokens if token < start]
                written = reading.plain(reading.decode(self.characters, ids))
                wanted = reading.plain(self.valid.texts[index])
                edits += reading.edit_distance(written, wanted)
                count += len(wanted)
        return {"cer": 100 * edits / max(count, 1)}


@lru_cache(maxsize=2)
def lines(size: Size, root: str | None) -> tuple[PrintedLines, SomeLines, Characters]:
    """Draw training and validation lines, and list their letters."""
    fonts = dict[str, Any](fonts=size.fonts, valid_fonts=size.held_out, column=size.column or None)
    data = ReadData(root=root, train=size.trained, valid=size.valid, **fonts)
    train, valid = LineSource(data).splits()
    train.widths(0)  # computed once for all lines: not a part of what is timed
    few = SomeLines(valid, range(len(valid.texts))[: size.lines])
    return train, few, Characters.learn(map(reading.letters, train.texts))


def train(
    arm: str, steps: int, rate: float, size: Size, root: str | None, seed: int, timed: bool = False
) -> Measured:
    """Train one model; when only timed, validate on one line."""
    learned, valid, characters = lines(size, root)
    usual = {"batch_width": size.batch_width, "muon": True, "weight_decay": 0.01}
    warmup = max(steps // 20, 1)
    how = training(reading.ReadTrainConfig, steps, rate, warmup=warmup, **usual)
    reader = LineReaderConfig(
        vocabulary=len(characters), dim=size.dim, layers=size.layers, ffn_dim=2 * size.dim
    )
    sizes = widths(len(characters) + 2, size.dim, reader.heads)
    config = WriterConfig(reader=reader, decoder_layers=size.layers, **sizes)
    task = (WriteTask if arm == WRITER else reading.ReadTask)(
        learned, SomeLines(valid.lines, [0]) if timed else valid, characters, how, seed=seed
    )
    model = fresh(config if arm == WRITER else reader, seed)
    busy = time.process_time()
    run = learn(model, task)
    return {
        "cer": run.last("cer"),
        "steps": steps,
        "rate": rate,
        "seconds": time.process_time() - busy,
        "parameters": parameters(model),
    }


def updates_a_second(bench: Bench, arm: str, size: Size) -> float:
    """Measure how many updates a core makes in a second."""
    short, long = (
        bench.trial(
            f"{arm}, {steps} updates",
            partial(train, arm, steps, size.rates[0], size, bench.root, 1, timed=True),
        )["seconds"]
        for steps in (size.timed, 3 * size.timed)  # the difference has no start-up
    )
    return 2 * size.timed / max(long - short, long / 3)


def conclude(measured: dict[str, dict[float, list[Measured]]], size: Size) -> str:
    """Say which makes fewer mistakes after each time."""
    parts = []
    for seconds in size.seconds:
        ctc, written = (measured[arm][seconds] for arm in ARMS)
        how = {-1: "fewer", 1: "more", 0: "not surely fewer"}[verdict(ctc, written, "cer")]
        parts.append(
            f"after {seconds:g} seconds of one core CTC makes {how} mistakes than the decoder "
            f"({mean(ctc, 'cer')}% of the characters against {mean(written, 'cer')}%, in "
            f"{mean(ctc, 'steps')} and {mean(written, 'steps')} updates)"
        )
    return "With the same encoder, " + "; ".join(parts) + "."


def run(bench: Bench, size: Size) -> Outcome:
    """Train both arms for each time, with each seed."""

    def tuned(arm: str) -> dict[float, list[Measured]]:
        speed = updates_a_second(bench, arm, size)

        def measure(seconds: float, rate: float, seed: int) -> Measured:
            return train(arm, max(round(seconds * speed), 1), rate, size, bench.root, seed)

        names = {seconds: f"{arm}, {seconds:g} s" for seconds in size.seconds}
        return bench.tuned(names, size.rates, measure, lambda trial: -trial["cer"])

    measured = {arm: tuned(arm) for arm in ARMS}
    by_time = {seconds: {arm: measured[arm][seconds] for arm in ARMS} for seconds in size.seconds}
    return conclude(measured, size), {"measured": measured, "by_time": by_time}
