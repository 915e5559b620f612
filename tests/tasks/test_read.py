"""Reading lines: the CTC loss by hand, Hangul letter by letter, and the error rate."""

import math
import unicodedata
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.images.line_images import stack
from manyheads.data.tokenizers.characters import UNKNOWN, Characters
from manyheads.decode.ctc import CtcResult
from manyheads.models.line_reader import LineReader, LineReaderConfig
from manyheads.tasks.read.task import (
    ReadTask,
    ReadTrainConfig,
    by_width,
    ctc_loss,
    decode,
    edit_distance,
    encode,
    letters,
    measure,
    plain,
    predict_logits,
    spell,
)

HANGUL = Characters.learn(letters("".join(map(chr, range(0xAC00, 0xD7A4)))))
TINY = LineReaderConfig(
    vocabulary=8,
    line_height=16,
    widths=(4, 8),
    row_strides=(2, 2),
    column_strides=(2, 2),
    dim=16,
    layers=1,
    heads=2,
    ffn_dim=16,
)


class Bars:
    """Lines whose letters are bars of different heights: a is low, b is high."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def widths(self, epoch: int) -> np.ndarray:
        return np.array([8 * len(text) + 8 for text in self.texts])

    def pixels(self, index: int, epoch: int) -> np.ndarray:
        text = self.texts[index]
        found = np.full((16, 8 * len(text) + 8), 255, dtype=np.uint8)
        for place, letter in enumerate(text):
            found[16 - 4 * (1 + "abc".index(letter)) :, 8 * place + 4 : 8 * place + 8] = 0
        return found

    def describe(self, index: int, epoch: int) -> str:
        return self.texts[index]


def test_ctc_loss_by_hand() -> None:
    """Two columns, blank .6 and a .4: p(a) = .4 .6 + .6 .4 + .4 .4 = .64, and p() = .36."""
    logits = torch.tensor([[[0.6, 0.4], [0.6, 0.4]]]).log()
    lengths = torch.tensor([1])
    assert ctc_loss(logits, torch.tensor([1]), lengths).item() == pytest.approx(-math.log(0.64))
    both = ctc_loss(logits.repeat(2, 1, 1), torch.tensor([1, 1]), torch.tensor([1, 1]))
    assert both.item() == pytest.approx(-2 * math.log(0.64))
    empty = ctc_loss(logits, torch.tensor([], dtype=torch.long), torch.tensor([0]))
    assert empty.item() == pytest.approx(-math.log(0.36))


def test_a_line_too_narrow_for_its_text_counts_nothing() -> None:
    """a a needs three columns: its probability in two is 0."""
    logits = torch.zeros(1, 2, 2, requires_grad=True)
    loss = ctc_loss(logits, torch.tensor([1, 1]), torch.tensor([2]))
    assert loss.item() == 0
    loss.backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def test_67_letters_write_every_syllable() -> None:
    """19 initial, 21 middle and 27 final letters: 11,172 syllables."""
    assert len(HANGUL.alphabet) == 19 + 21 + 27
    text = "".join(map(chr, range(0xAC00, 0xD7A4)))
    assert decode(HANGUL, encode(HANGUL, text)) == text


@given(st.text("가나다각힣뷁 abcé.가ㅏ"))
def test_what_was_encoded_is_spelled_again(text: str) -> None:
    characters = Characters.learn(letters("가나다각힣뷁 abcé.가ㅏ" * 2))
    ids = encode(characters, text)
    result = CtcResult(tuple(ids), (0.5,) * len(ids), 0.0)
    read = spell(characters, result)
    assert "".join(each.character for each in read) == unicodedata.normalize("NFC", text)
    assert math.prod(each.probability for each in read) == pytest.approx(0.5 ** len(ids))


def test_a_syllable_is_as_probable_as_its_letters_together() -> None:
    result = CtcResult(tuple(encode(HANGUL, "각가")), (0.9, 0.8, 0.5, 1.0, 0.25), 0.0)
    (first, second) = spell(HANGUL, result)
    assert tuple(first) == ("각", pytest.approx(0.36))
    assert tuple(second) == ("가", pytest.approx(0.25))


def test_unknown_characters_are_told() -> None:
    assert decode(HANGUL, [UNKNOWN]) == "\ufffd"


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_edit_distance_by_hand(first: str, second: str, edits: int) -> None:
    """Kitten, sitten, sittin, sitting."""
    assert edit_distance(first, second) == edits


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_edit_distance_is_the_recursive_one(first: str, second: str) -> None:
    @cache
    def naive(a: int, b: int) -> int:
        if not a or not b:
            return a + b
        replaced = naive(a - 1, b - 1) + (first[a - 1] != second[b - 1])
        return min(replaced, naive(a - 1, b) + 1, naive(a, b - 1) + 1)

    assert edit_distance(first, second) == naive(len(first), len(second))


def test_texts_are_compared_composed_and_with_single_spaces() -> None:
    assert plain(f" {letters('한글')}  a\n") == "한글 a"


@given(st.lists(st.integers(1, 400), min_size=1))
def test_lines_are_grouped_by_their_own_width(widths: list[int]) -> None:
    """Every line once; a batch has one width; nothing is cut off."""
    found = [(width, member) for width, members in by_width(widths) for member in members]
    assert sorted(member for _, member in found) == list(range(len(widths)))
    assert all(widths[member] <= width < widths[member] + 32 for width, member in found)
    assert all(width % 32 == 0 for width, _ in found)


def test_one_batch_is_learned_by_heart() -> None:
    """From a loss of many nats to reading every bar, and the same text in batches and alone."""
    lines = Bars(["abc", "cab", "bca", "aab", "ccc", "abab", "a", "bb"])
    characters = Characters.learn([*lines.texts, "abc"])
    config = ReadTrainConfig(batch_width=4096)
    task = ReadTask(lines, lines, characters, config, seed=1)
    (plan,) = task.plan(0)
    (batch,) = task.load(0, [plan])
    assert batch.units == len(lines.texts)
    assert batch.images.shape == (8, 1, 16, 64)
    torch.manual_seed(0)
    model = LineReader(TINY)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = task.loss(model, batch)
    assert first.weight == sum(map(len, lines.texts))
    for _ in range(120):
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.sum.backward()
        optimizer.step()
    assert loss.sum.item() < 0.05 * first.sum.item()
    scores = task.evaluate(model.eval())
    assert scores["cer"] == 0
    assert scores["exact"] == 100
    assert measure(model, characters, lines).texts == lines.texts
    assert "abc" in task.describe(batch)


def test_what_is_read_does_not_depend_on_the_batch() -> None:
    """A line alone, and the same among others of many widths."""
    torch.manual_seed(0)
    model = LineReader(TINY).eval()
    random = np.random.default_rng(0)
    lines = [
        random.integers(0, 256, (16, width), dtype=np.uint8) for width in (5, 30, 32, 33, 64, 300)
    ]
    together = predict_logits(model, lines)
    for line, scores in zip(lines, together, strict=True):
        (alone,) = predict_logits(model, [line])
        torch.testing.assert_close(alone, scores, rtol=0, atol=1e-5)


def test_batches_are_a_function_of_seed_and_epoch() -> None:
    lines = Bars(["abc"] * 50 + ["a"] * 50)
    characters = Characters.learn(["abc"] * 2)
    config = ReadTrainConfig(batch_width=256)

    def plan(epoch: int, seed: int = 1) -> list[list[int]]:
        task = ReadTask(lines, lines, characters, config, seed=seed)
        return [batch.tolist() for batch in task.plan(epoch)]

    assert plan(0) == plan(0)
    assert plan(0) != plan(1)
    assert plan(0) != plan(0, seed=2)
    assert sorted(index for batch in plan(0) for index in batch) == list(range(100))
    widths = lines.widths(0)
    assert all(stack([lines.pixels(i, 0) for i in b]).shape[3] * len(b) <= 256 for b in plan(0))
    assert max(widths) == 32
