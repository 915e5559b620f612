"""T16, to the digits of the lecture."""

import pytest

from manyheads.lens.measures.token_losses import MOST, loss_table, losses
from manyheads.lens.panels import Table

TOKENS = ["▁Je", "▁suis", "▁un", "▁étudiant", "</s>"]
CHANCES = [0.8, 0.6, 0.7, 0.5, 0.9]


def test_the_lectures_table() -> None:
    """-log p = .223 .511 .357 .693 .105, mean .378, perplexity 1.46."""
    figure = loss_table(TOKENS, CHANCES, title="t", given="given the source")
    assert isinstance(figure.panel, Table)
    assert figure.panel.columns == ["token", "p", "-log p"]
    words, shown, costs = zip(*figure.panel.rows, strict=True)
    assert words == ("Je", "suis", "un", "étudiant", "</s>", "mean")
    assert shown == (0.8, 0.6, 0.7, 0.5, 0.9, None)
    assert costs == (0.223, 0.511, 0.357, 0.693, 0.105, 0.378)
    assert "perplexity 1.46" in figure.legend


def test_a_long_text_is_cut_but_counted() -> None:
    """The mean is over all tokens; a probability of 0 costs much, but not infinity."""
    chances = [1.0] * MOST + [0.5] * MOST
    figure = loss_table(["a"] * 2 * MOST, chances, title="t", given="")
    assert isinstance(figure.panel, Table)
    assert len(figure.panel.rows) == MOST + 1
    assert figure.panel.rows[-1][2] == pytest.approx(0.347, abs=5e-4)  # half of log 2
    assert f"{MOST} more tokens" in figure.legend
    assert losses([0.0])[0] == pytest.approx(690.8, abs=0.1)
    assert str(losses([1.0])[0]) == "0.0"  # not -0.0, which a table would show
