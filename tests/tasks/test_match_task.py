"""The matching task: what a batch is, gradients in parts, and recall in both directions."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from manyheads.data.augment.augment import Augmentation
from manyheads.data.batching.batches import MatchBatch
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.images.pixels import Pixels
from manyheads.data.tokenizers.tokenizer import END, PAD, Tokenizer, TokenizerConfig
from manyheads.errors import DataError
from manyheads.models.matcher import Matcher, MatcherConfig
from manyheads.models.vit import VitConfig
from manyheads.tasks.match.task import (
    MatchTask,
    MatchTrainConfig,
    Queries,
    embed_texts,
    image_vectors,
    queries,
    recalls,
    text_ranks,
)
from manyheads.train.contrastive import softmax_contrast
from manyheads.train.device import autocast
from manyheads.train.loop import fit, update
from manyheads.train.optim import optimizer
from manyheads.train.training_task import OwnBackward
from tests.made import Silent
from tests.small import randomise
from tests.squares import captioned, square, texts

PREPROCESSING = Preprocessing(height=8, width=8)
CPU = torch.device("cpu")


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.train(captioned().texts, TokenizerConfig(size=330))


def task(config: MatchTrainConfig | None = None, data: CaptionedImages | None = None) -> MatchTask:
    return MatchTask(
        data or captioned(),
        data or captioned(),
        tokenizer(),
        PREPROCESSING,
        Augmentation(),
        config or MatchTrainConfig(batch_size=5),
        seed=1,
    )


def model(*, dropout: float = 0.0, **changes: Any) -> Matcher:
    torch.manual_seed(0)
    image = VitConfig(
        height=8, width=8, patch=4, dim=16, layers=1, heads=2, ffn_dim=32, dropout=dropout
    )
    config = MatcherConfig(
        image=image,
        embedding=16,
        vocabulary=len(tokenizer()),
        dim=16,
        heads=2,
        ffn_dim=32,
        layers=1,
        dropout=dropout,
    )
    return replace(config, **changes).build()


# --- Batches ------------------------------------------------------------------------------------


def test_a_batch() -> None:
    """Images, a text of each with its end, and which belong together."""
    (batch,) = task().load(0, [np.array([3, 0])])
    pixels = torch.from_numpy(np.asarray(square(3)).copy()).permute(2, 0, 1)
    assert torch.equal(batch.images[0], (pixels.float() / 255 - 0.5) / 0.5)
    written = [[token for token in row if token != PAD] for row in batch.tokens.tolist()]
    assert all(row[-1] == END for row in written)
    for number, text in zip((3, 0), tokenizer().decode([row[:-1] for row in written]), strict=True):
        assert text in [each for several in texts(number).values() for each in several]
    assert batch.positives.tolist() == [[True, False], [False, True]]
    assert batch.units == 2


def test_two_images_may_share_a_text() -> None:
    """Whatever the case and the spaces; then both belong to it, whichever drew it."""
    data = captioned(2)
    data = replace(data, texts=["A  cat", "x", "y", "a cat", "z", "w"])
    made = task(MatchTrainConfig(texts=40), data)
    (batch,) = made.load(0, [np.array([0, 1])])
    assert batch.tokens.shape[0] == batch.positives.shape[1] == 80
    lower = [
        tokenizer().decode([[t for t in row if t not in (PAD, END)]])[0].casefold().split()
        for row in batch.tokens.tolist()
    ]
    both = batch.positives.all(dim=0)
    assert both.tolist() == [words == ["a", "cat"] for words in lower]
    assert both.any()
    assert batch.positives[0, :40].all()
    assert batch.positives[1, 40:].all()


def test_texts_are_drawn_a_language_first() -> None:
    """Of two English texts and one Korean, half are Korean; a pure function of epoch and image."""
    made = task(MatchTrainConfig(texts=300))
    drawn = made._texts(4, 0)
    assert drawn == made._texts(4, 0) != made._texts(4, 1)
    korean = [made.captions.languages[number] == "ko" for number in drawn]
    assert 0.4 < np.mean(korean) < 0.6
    assert {made.captions.texts[number] for number in drawn} == {
        text for several in texts(4).values() for text in several
    }


def contents(batches: Iterator[MatchBatch]) -> list[tuple[Any, ...]]:
    return [(batch.tokens.tolist(), batch.positives.tolist()) for batch in batches]


def test_a_resumed_epoch_draws_the_same_texts() -> None:
    made = task(MatchTrainConfig(batch_size=5, texts=2))
    plan = made.plan(2)
    assert contents(made.load(2, plan))[1:] == contents(made.load(2, plan[1:]))
    assert contents(made.load(3, plan)) != contents(made.load(2, plan))


def test_long_texts_are_cut() -> None:
    """The end stays."""
    made = task(MatchTrainConfig(max_length=4))
    assert all(len(tokens) <= 4 and tokens[-1] == END for tokens in made.tokens)
    assert any(len(tokens) == 4 for tokens in made.tokens)


def test_an_image_without_a_text_is_refused() -> None:
    data = captioned(3)
    kept = data.owners != 1
    data = replace(
        data,
        owners=data.owners[kept],
        texts=[text for text, keep in zip(data.texts, kept, strict=True) if keep],
        languages=[each for each, keep in zip(data.languages, kept, strict=True) if keep],
    )
    with pytest.raises(DataError, match="squares: 1 images have no text: red right"):
        task(data=data)


def test_smoothing_is_refused() -> None:
    """There are no labels; it would have no effect."""
    with pytest.raises(ValueError, match=r"label_smoothing is 0\.1, but a matcher learns from"):
        MatchTrainConfig(label_smoothing=0.1)


# --- Gradients in parts -------------------------------------------------------------------------


def gradients(
    net: Matcher, config: MatchTrainConfig, images: int, precision: Any = "fp32"
) -> tuple[dict[str, Tensor], float, float]:
    """What one update adds to each parameter; its loss, and the share of right answers."""
    made = task(config, captioned(images))
    (batch,) = made.load(0, [np.arange(images)])
    net = net.train()
    net.zero_grad()
    torch.manual_seed(7)
    with autocast(CPU, precision):
        loss = made.backward(net, batch)
    if loss.sum.requires_grad:
        loss.sum.backward()
    found = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    assert found.keys() == dict(net.named_parameters()).keys()
    return found, loss.sum.item(), loss.logs["accuracy"]


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@given(images=st.integers(1, 12), size=st.integers(1, 13), drawn=st.integers(1, 3))
def test_parts_give_the_gradients_of_the_whole(
    loss: Any, images: int, size: int, drawn: int
) -> None:
    """Any number of images and texts, in parts of any size; the last one is smaller."""
    net = model(score_bias=-10.0 if loss == "sigmoid" else None)
    whole = gradients(net, MatchTrainConfig(loss=loss, texts=drawn), images)
    parts = gradients(net, MatchTrainConfig(loss=loss, texts=drawn, part_size=size), images)
    assert parts[1:] == pytest.approx(whole[1:], rel=1e-5)
    for name, gradient in whole[0].items():
        torch.testing.assert_close(parts[0][name], gradient, atol=2e-5, rtol=1e-4)


def test_dropout_is_the_same_in_both_passes() -> None:
    """Against finite differences of the loss that the parts have: dropout is on, and repeated."""
    config, images = MatchTrainConfig(part_size=2), 6
    net = randomise(model(dropout=0.3)).double().train()
    made = task(config, captioned(images))
    (batch,) = made.load(0, [np.arange(images)])
    batch = replace(batch, images=batch.images.double())
    parts = [
        (batch.images[first : first + 2], batch.tokens[first : first + 2]) for first in (0, 2, 4)
    ]

    def loss() -> Tensor:
        """All parts with a graph, their dropout drawn one after the other."""
        torch.manual_seed(7)
        images, texts = zip(*(net(*part) for part in parts), strict=True)
        scores = net.scores(torch.cat(images), torch.cat(texts))
        return softmax_contrast(scores, batch.positives)

    expected = torch.autograd.grad(loss(), list(net.parameters()))
    torch.manual_seed(7)
    found = made.backward(net, batch)
    assert not found.sum.requires_grad
    assert found.sum.item() == pytest.approx(loss().item(), rel=1e-5)
    for gradient, parameter in zip(expected, net.parameters(), strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-4, rtol=1e-3)
    torch.manual_seed(7)
    loss()
    after = torch.rand(1)
    torch.manual_seed(7)
    made.backward(net, batch)
    assert torch.equal(torch.rand(1), after)  # what is drawn next goes on where it would


def test_parts_in_bf16() -> None:
    """Every weight has a gradient, also where autocast keeps what it has rounded once."""
    net = model()
    whole = gradients(net, MatchTrainConfig(), 8, "bf16")
    parts = gradients(net, MatchTrainConfig(part_size=3), 8, "bf16")
    for name, gradient in whole[0].items():
        apart = (parts[0][name] - gradient).norm() / gradient.norm().clamp(min=1e-6)
        assert apart < 0.1, name


def test_the_loop_leaves_the_gradients_to_the_task() -> None:
    """An update from several batches with parts is the one without."""
    states = []
    for size in (None, 2):
        config = MatchTrainConfig(batch_size=6, part_size=size, accumulate=2)
        made, net = task(config), model()
        assert isinstance(made, OwnBackward)
        window = list(made.load(0, made.plan(0)))
        update(net, made, window, config, optimizer(net, config), 1, CPU)
        states.append({name: p.grad for name, p in net.named_parameters()})
    for name, gradient in states[0].items():
        assert gradient is not None
        torch.testing.assert_close(states[1][name], gradient, atol=1e-5, rtol=1e-4)


def test_accuracy_of_a_batch() -> None:
    """The share of images whose best text is one of theirs: here two of three."""

    class Told(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, images: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
            return self.weight * torch.eye(3), torch.eye(3)[[0, 1, 1]]

        def scores(self, images: Tensor, texts: Tensor) -> Tensor:
            return images @ texts.T

    (batch,) = task().load(0, [np.arange(3)])
    loss = task().loss(Told(), batch)
    assert loss.weight == 3.0
    assert dict(loss.logs) == {"accuracy": pytest.approx(200.0)}


# --- Recall -------------------------------------------------------------------------------------


def ranks(scores: list[list[float]], right: list[set[int]]) -> list[int]:
    """Of questions that are unit vectors, so that the scores are the answers' columns."""
    answers = torch.tensor(scores).T
    return text_ranks(answers, torch.eye(len(scores)), right).tolist()


def test_ranks_by_hand() -> None:
    """How many wrong ones are before the best right one."""
    assert ranks([[0.9, 0.5, 0.1]], [{0}]) == [0]
    assert ranks([[0.9, 0.5, 0.1]], [{1}]) == [1]
    assert ranks([[0.9, 0.5, 0.1]], [{2}]) == [2]
    assert ranks([[0.9, 0.5, 0.1], [0.1, 0.2, 0.3]], [{2}, {2}]) == [2, 0]


def test_ranks_with_several_right_ones() -> None:
    """The best counts, and other right ones are not before it."""
    assert ranks([[0.9, 0.5, 0.1]], [{0, 2}]) == [0]
    assert ranks([[0.9, 0.5, 0.1, 0.7]], [{1, 2}]) == [2]
    assert ranks([[0.9, 0.5, 0.1, 0.7]], [{1, 3, 2}]) == [1]
    assert ranks([[0.9, 0.9, 0.1]], [{0, 1}]) == [0]


def test_ties_count_as_wrong() -> None:
    """A model that finds all alike finds nothing; of equal images either is right."""
    assert ranks([[0.5, 0.5, 0.5]], [{0}]) == [2]
    assert ranks([[0.5, 0.5, 0.5]], [{0, 2}]) == [1]
    assert ranks([[0.9, 0.5, 0.5]], [{1}]) == [2]


@given(count=st.integers(1, 8), seed=st.integers(0, 99))
def test_ranks_are_places_in_the_order(count: int, seed: int) -> None:
    """Without ties: the place of the first right one, less none."""
    random = np.random.default_rng(seed)
    scores = random.permutation(count).astype(float)
    right = set(random.permutation(count)[: random.integers(1, count + 1)].tolist())
    order = np.argsort(-scores).tolist()
    expected = next(place for place, number in enumerate(order) if number in right)
    assert ranks([scores.tolist()], [right]) == [expected]


def test_queries_are_the_different_texts() -> None:
    """By language; a text of several images belongs to each."""
    data = replace(captioned(2), texts=["A cat", "b", "ㄱ", "a  CAT", "c", "ㄱ"])
    data = replace(data, languages=["en", "de", "ko"] * 2)
    found = queries(data)
    assert found.texts == ["A cat", "b", "ㄱ", "c"]
    assert found.languages == ["en", "de", "ko", "de"]
    assert found.images == [{0, 1}, {0}, {0, 1}, {1}]


class Table(nn.Module):
    """Vectors of texts by their first token."""

    def __init__(self, vectors: dict[int, list[float]]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.vectors = vectors
        self.config: Any = MatcherConfig()

    def encode_texts(self, tokens: Tensor) -> Tensor:
        return torch.tensor([self.vectors[int(row[0])] for row in tokens])


class Words:
    """A tokenizer of numbers."""

    def encode(self, lines: list[str]) -> list[list[int]]:
        return [list(map(int, line.split())) for line in lines]


def test_recall_by_hand() -> None:
    """Three images on the axes; four texts in two languages, one of which misses.

    To images: 5 -> 0 right, 6 -> 1 right (or 0), 7 -> 2 right, 8 -> 2 wrong (should be 1).
    To texts: image 0 finds 5, its own; image 1 finds 6; image 2 finds 7 and 8 alike: a tie.
    """
    vectors = {5: [1.0, 0, 0], 6: [0.6, 0.8, 0], 7: [0, 0, 1.0], 8: [0, 0, 1.0]}
    asked = Queries(["5", "6", "7", "8"], ["en", "ko", "en", "ko"], [{0}, {0, 1}, {2}, {1}])
    table: Any = Words()
    written = embed_texts(Table(vectors), table, asked.texts, 4)
    found = recalls(torch.eye(3), written, asked)
    assert found == {
        "text_to_image_1": 75.0,
        "text_to_image_10": 100.0,
        "image_to_text_1": pytest.approx(200 / 3),
        "image_to_text_10": 100.0,
        "text_to_image_1_en": 100.0,
        "text_to_image_10_en": 100.0,
        "text_to_image_1_ko": 50.0,
        "text_to_image_10_ko": 100.0,
    }
    one = recalls(torch.eye(3), written[:1], Queries(["5"], ["en"], [{0}]))
    assert one.keys() == {
        f"{way}_{k}" for way in ("text_to_image", "image_to_text") for k in (1, 10)
    }
    assert set(one.values()) == {100.0}  # images without a text are not asked


def test_texts_are_embedded_in_their_order() -> None:
    """Sorted by length on the way; a text of other characters than the vocabulary's, too."""
    net = model().eval()
    several = ["red left and more of it", "a", "", "초록 위", "눈🙂"]
    together = embed_texts(net, tokenizer(), several, 64)
    for row, text in enumerate(several):
        alone = embed_texts(net, tokenizer(), [text], 64)
        torch.testing.assert_close(together[row : row + 1], alone, atol=1e-5, rtol=0)


# --- Learning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_pairs_are_learned_by_heart(loss: Any, tmp_path: Path) -> None:
    """Twelve images and their 36 texts find each other, in batches that are computed in parts."""
    steps = 130
    config = MatchTrainConfig(
        loss=loss,
        steps=steps,
        batch_size=12,
        part_size=6,
        texts=2,
        learning_rate=1e-2,
        warmup=5,
        validate_every=steps,
        log_every=steps,
        save_every=steps,
    )
    made, net = task(config), model(score_bias=-10.0 if loss == "sigmoid" else None)
    before = made.evaluate(net.eval())
    assert before["text_to_image_1"] < 60
    fit(
        net,
        made,
        config,
        tmp_path,
        seed=1,
        environment={},
        save_best=lambda model: None,
        observer=Silent(),
    )
    assert set(made.evaluate(net.eval()).values()) == {100.0}
    vectors = image_vectors(net, Pixels(captioned().images, PREPROCESSING))
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(12))
