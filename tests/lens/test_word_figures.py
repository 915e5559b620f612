"""One word in several sentences, with vectors made by hand."""

import pytest
import torch

from manyheads.lens.measures.word_figures import Occurrence, similarity, tokens_of, word_figures
from manyheads.lens.panels import Heat, Lines


def occurrence(text: str, vectors: list[list[list[float]]], own: list[int]) -> Occurrence:
    tokens = text.split()
    layers = [(f"layer {n}", torch.tensor(layer)) for n, layer in enumerate(vectors)]
    weights = torch.full((len(tokens),), 1 / len(tokens))
    others = [n for n in range(len(tokens)) if n not in own]
    return Occurrence(text, tokens, own, others, layers, [("layer 1", weights)])


def test_tokens_of_a_word() -> None:
    """All that share a character with it; a token that is no text does not."""
    spans = [[0, 3], [3, 5], [6, 9], None]
    assert tokens_of(spans, 4, 9) == [1, 2]
    assert tokens_of(spans, 5, 6) == []


def test_similarity_is_of_means() -> None:
    """Two tokens with the mean (1, 1) against (1, 0): cos 45 degrees."""
    word = torch.tensor([[2.0, 0], [0, 2]])
    assert similarity(word, torch.tensor([[5.0, 0]])) == pytest.approx(0.5**0.5)


def test_a_word_in_two_contexts() -> None:
    """The same vector before the first layer, 90 degrees apart behind it; other words beside."""
    one = occurrence("a cat", [[[0, 1], [1, 0]], [[0, 1], [1, 0]]], [1])
    two = occurrence("cat b", [[[1, 0], [0, 1]], [[0, 1], [0, -1]]], [0])
    figures = word_figures("cat", [one, two])
    assert [each.group for each in figures] == ["word"] * 3
    assert isinstance(figures[0].panel, Lines)
    same, other = figures[0].panel.curves
    assert same.name == "cat, sentences 1 and 2"
    assert same.y == [1, 0]
    assert other.y == [1, -1]
    assert "1: a cat; 2: cat b" in figures[0].legend
    assert isinstance(figures[1].panel, Heat)
    assert figures[1].panel.columns == ["a", "cat"]


def test_one_sentence_and_many() -> None:
    """Alone it only looks; of five sentences the ten pairs share a curve; no others, no line."""
    alone = occurrence("cat", [[[1, 0]]], [0])
    assert [each.panel.title for each in word_figures("cat", [alone])] == [
        "Attention of cat, sentence 1"
    ]
    (first, *rest) = word_figures("cat", [alone] * 5)
    assert isinstance(first.panel, Lines)
    (curve,) = first.panel.curves
    assert curve.name == "cat, mean of 10 pairs"
    assert len(rest) == 5
