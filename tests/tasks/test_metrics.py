"""Scores, and the signatures that say how they were computed."""

import pytest
import sacrebleu

from manyheads.tasks.metrics import bleu, exact_match


def test_exact_match() -> None:
    """Character by character: a space or a full stop too many is wrong."""
    outputs = ["2026년 11월 20일", "11월 20일 ", "11월", "12월"]
    references = ["2026년 11월 20일", "11월 20일", "11월", "11월"]
    assert exact_match(outputs, references) == (50.0, "exact match")


def test_bleu_is_sacrebleus() -> None:
    """Of detokenised text, over the corpus, with its signature."""
    outputs = ["Ein Mann mit einem Hut steht hier.", "Zwei Hunde laufen im Park."]
    references = ["Ein Mann mit einem Hut steht da.", "Zwei Hunde rennen im Park."]
    found = bleu(outputs, references)
    assert found.value == pytest.approx(sacrebleu.corpus_bleu(outputs, [references]).score)
    assert 40 < found.value < 80
    for part in ("nrefs:1", "case:mixed", "tok:13a", "version:"):
        assert part in found.signature


def test_bleu_by_hand() -> None:
    """All n-grams right, but the output is 4 tokens for 5: e^(1 - 5/4) (Papineni et al. 2002)."""
    found = bleu(["a b c d"], ["a b c d e"])
    assert found.value == pytest.approx(100 * 2.718281828 ** (1 - 5 / 4))


def test_as_many_outputs_as_references() -> None:
    """A missing translation must not go unnoticed."""
    with pytest.raises(ValueError, match="zip"):
        exact_match(["one"], ["eins", "zwei"])
