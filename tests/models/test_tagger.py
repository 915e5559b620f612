"""One answer a token (T1): what each answer may depend on."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.presets import build, preset
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig, Tagger
from tests.small import randomise

CELLS = ["rnn", "gru", "lstm"]
TOKENS = torch.tensor([[4, 7, 5, 9, 3], [6, 3, 8, 0, 0]])


def recurrent(cell: str, **changes: object) -> Tagger:
    config = RecurrentTaggerConfig(vocabulary=11, classes=3, dim=6, hidden_size=8, cell=cell)  # type: ignore[arg-type]
    return randomise(Tagger(replace(config, **changes))).eval()  # type: ignore[arg-type]


def encoder() -> Tagger:
    config = EncoderTaggerConfig(vocabulary=11, classes=3, dim=8, heads=2, ffn_dim=16)
    return randomise(Tagger(config)).eval()


def differences(model: Tagger, place: int) -> Tensor:
    """How much each token's logits of the first text change with its token at a place."""
    changed = TOKENS.clone()
    changed[0, place] = 10
    return (model(changed) - model(TOKENS)).abs().amax(-1)


@pytest.mark.parametrize("cell", CELLS)
def test_one_direction_knows_only_the_past(cell: str) -> None:
    """T1: token by token, an answer after each."""
    model = recurrent(cell, bidirectional=False)
    for place in range(5):
        changed = differences(model, place)
        assert changed[0, :place].sum() == 0
        assert changed[0, place:].min() > 1e-6
        assert changed[1].max() == 0


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_two_directions_know_the_whole_text(cell: str, layers: int) -> None:
    """So what follows a character can be known at it."""
    changed = differences(recurrent(cell, layers=layers), 2)
    assert changed[0].min() > 1e-6
    assert changed[1].max() == 0


def test_the_encoder_stack_is_another_context() -> None:
    """The same seam: token vectors in, token vectors that know their context out."""
    changed = differences(encoder(), 2)
    assert changed[0].min() > 1e-6
    assert changed[1].max() < 1e-6


@pytest.mark.parametrize("model", [*map(recurrent, CELLS), encoder()])
def test_padding_changes_nothing(model: Tagger) -> None:
    """A text has the same answers alone as beside a longer one."""
    torch.testing.assert_close(model(TOKENS)[1:, :3], model(TOKENS[1:, :3]), atol=1e-6, rtol=0)


def test_scored_positions_are_a_selection() -> None:
    """Row by row."""
    model, scored = encoder(), TOKENS != 0
    torch.testing.assert_close(model(TOKENS, scored), model(TOKENS)[scored])


def test_an_odd_width_cannot_be_shared() -> None:
    """Says what to do."""
    with pytest.raises(UsageError, match=r"hidden_size is 7.*even number.*bidirectional = false"):
        RecurrentTaggerConfig(hidden_size=7)


def test_equal_budgets() -> None:
    """Counted: dim 128, h = 256, 2,000 characters; an LSTM has four times an RNN's cell."""
    counts = {}
    for name in ("rnn", "gru", "lstm"):
        with torch.device("meta"):
            model = build(preset(f"tagger-{name}"))
        counts[name] = sum(p.numel() for p in model.parameters())
    outside = 2000 * 128 + 2 * 256 + 2
    assert counts["gru"] - outside == 3 * (counts["rnn"] - outside)
    assert counts["lstm"] - outside == 4 * (counts["rnn"] - outside)
