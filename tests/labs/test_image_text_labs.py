"""Experiments with images and texts: data, losses and sentences worked out by hand."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.data.tokenizers.characters import Characters
from manyheads.labs.bench import Bench
from manyheads.labs.catalogue import find
from manyheads.labs.emoji import LANGUAGES, emoji, first, in_languages
from manyheads.labs.experiments import reading_lab as reading
from manyheads.labs.experiments import tongues_lab as tongues
from manyheads.labs.experiments import towers_lab as towers
from manyheads.labs.experiments.reading_lab import Writer, WriterConfig, WriteTask
from manyheads.models.line_reader import LineReaderConfig
from manyheads.tasks.read.task import LineBatch, ReadTrainConfig


def test_the_emoji_of_a_language(root: Path) -> None:
    """All images stay, and the texts of the others go."""
    learned, held = emoji(str(root), 4)
    assert len(held) == 4
    assert len(learned) == 20
    assert len(learned.texts) == 5 * 20
    some = in_languages(learned, ("ko", "ja"))
    assert len(some) == 20
    assert set(some.languages) == {"ko", "ja"}
    assert all(text.startswith(code) for text, code in zip(some.texts, some.languages, strict=True))
    assert sorted(set(some.owners.tolist())) == list(range(20))
    assert len(first(some, 3)) == 3
    assert len(first(some, 3).texts) == 6


# --- tongues ------------------------------------------------------------------------------------


def test_each_arm_chooses_its_own_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first seed and the first language; the others take it."""
    seen = []

    def train(arm: str, size: Any, root: Any, language: str, rate: float, seed: int) -> Any:
        seen.append((language, rate, seed))
        codes = [language] if language else LANGUAGES
        scores = {"chrf": -abs(rate - 2e-3), "exact": 0.0}
        return {"scores": dict.fromkeys(codes, scores), "loss": 0.0}

    monkeypatch.setattr(tongues, "train", train)
    size = find("tongues").sizes["smoke"]._replace(rates=(1e-3, 2e-3, 4e-3))
    _, data = tongues.run(Bench(seeds=(1, 2)), size)
    assert seen[:3] == [("en", 1e-3, 1), ("en", 2e-3, 1), ("en", 4e-3, 1)]
    assert seen[3:6] == [("en", 2e-3, 2), ("ko", 2e-3, 1), ("ko", 2e-3, 2)]
    assert seen[-4:] == [("", 1e-3, 1), ("", 2e-3, 1), ("", 4e-3, 1), ("", 2e-3, 2)]
    assert [*data["chrf"]] == [*tongues.ARMS]
    assert all([*cells] == [*LANGUAGES] for cells in data["chrf"].values())


def test_the_sentence_of_tongues_follows_its_numbers() -> None:
    def made(chrf: float) -> dict[str, list[dict[str, Any]]]:
        return {code: [{"scores": {code: {"chrf": chrf}}}] for code in LANGUAGES}

    found = {tongues.ALONE: made(50.0), tongues.TOGETHER: made(60.0), tongues.SHARED: made(40.0)}
    text = tongues.conclude(found)
    assert "better in en, ko, de, fr, ja, compared with" in text
    assert "(mean chrF 60.0 against 50.0)" in text
    assert "it is worse in en, ko, de, fr, ja (mean chrF 40.0)" in text
    assert "neither surely better nor surely worse in en" in tongues.conclude(
        found | {tongues.SHARED: made(50.0)}
    )


# --- towers -------------------------------------------------------------------------------------


def test_the_sentence_of_towers_follows_its_numbers() -> None:
    def made(*ten: float) -> dict[int, list[dict[str, float]]]:
        return {batch: [{"ten": each}] for batch, each in zip((2, 4), ten, strict=True)}

    size = find("towers").sizes["smoke"]
    text = towers.conclude({"softmax": made(50.0, 60.0), "sigmoid": made(40.0, 70.0)}, size)
    assert "with batches of 2 softmax finds more than sigmoid (50% against 40%" in text
    assert "with batches of 4 softmax finds less than sigmoid (60% against 70%" in text
    assert "softmax finds more and sigmoid finds more." in text


# --- reading ------------------------------------------------------------------------------------

CHARACTERS = Characters("ab")  # ids 2 and 3; start is 4 and end 5


class NoLines:
    """A set of lines of which nothing is asked here."""

    texts = ("ab",)

    def widths(self, epoch: int) -> np.ndarray:
        return np.array([16])

    def pixels(self, index: int, epoch: int) -> np.ndarray:
        return np.zeros((8, 16), np.uint8)

    def describe(self, index: int, epoch: int) -> str:
        return "line"


def writer() -> Writer:
    reader = LineReaderConfig(
        vocabulary=4,
        line_height=8,
        widths=(4, 4),
        row_strides=(2, 2),
        column_strides=(2, 2),
        dim=8,
        layers=1,
        heads=2,
        ffn_dim=8,
    )
    torch.manual_seed(0)
    return WriterConfig(
        reader=reader, vocabulary=6, dim=8, heads=2, ffn_dim=8, decoder_layers=1, dropout=0.0
    ).build()


def test_the_loss_of_a_writer_is_that_of_its_steps() -> None:
    """Teacher forcing gives what one step at a time gives, with start and end around a text."""
    model = writer().eval()
    task = WriteTask(NoLines(), NoLines(), CHARACTERS, ReadTrainConfig(), seed=1)
    images = torch.randn(2, 1, 8, 16)
    batch = LineBatch(
        images, torch.tensor([2, 3, 3]), torch.tensor([2, 1]), np.array([0, 1]), epoch=0
    )
    loss = task.loss(model, batch)
    assert loss.weight == 3  # letters, as with CTC
    wanted = 0.0
    for line, text in enumerate(([4, 2, 3, 5], [4, 3, 5])):
        state = model.start(images[line : line + 1], 1, len(text))
        for token, following in pairwise(text):
            scores, state = model.step(torch.tensor([[token]]), state)
            wanted -= scores[0, 0, following].item()
    torch.testing.assert_close(loss.sum.item(), wanted, rtol=1e-4, atol=1e-4)


def test_a_writer_writes_no_more_letters_than_columns() -> None:
    """An untrained one would go on for ever; what it writes is compared with the text."""
    task = WriteTask(NoLines(), NoLines(), CHARACTERS, ReadTrainConfig(), seed=1)
    assert 0 <= task.evaluate(writer().eval())["cer"] <= 100 * max(16 / 4, 2) / 2


def test_the_sentence_of_reading_follows_its_numbers() -> None:
    def made(cer: float) -> dict[float, list[dict[str, float]]]:
        return {0.1: [{"cer": cer, "steps": 7}], 0.2: [{"cer": 2 * cer, "steps": 9}]}

    size = find("reading").sizes["smoke"]
    found = {reading.COLUMNS: made(10.0), reading.WRITER: made(20.0)}
    text = reading.conclude(found, size)
    assert "after 0.1 seconds of one core CTC makes fewer mistakes than the decoder (10%" in text
    turned = {reading.COLUMNS: made(20.0), reading.WRITER: made(10.0)}
    assert "CTC makes more mistakes than the decoder (20%" in reading.conclude(turned, size)
