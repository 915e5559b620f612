"""Reading maps in pieces gives what reading them whole gives."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.lens.trace import attention_reader as reading
from manyheads.lens.trace.attention_reader import Groups, attentions, side_limit
from manyheads.lens.view.text_view import text_view
from manyheads.models.presets import build
from manyheads.models.transformer import Transformer
from manyheads.nn.recording.trace import Trace, record
from tests.lens import examples
from tests.small import IMAGES, SEQ2SEQS, inputs, randomise


def traces() -> list[Trace]:
    """Causal masks, padding masks, biases, windows, strided keys, scores of an RNN."""
    found = [examples.recorded(IMAGES[name]) for name in ("swin-t", "cvt-13", "coatnet-0")]
    found.append(examples.text_trace())
    config = SEQ2SEQS["seq2seq-gru-attention"]
    source, target = inputs(config)
    with record() as trace, torch.no_grad():
        randomise(build(config)).eval()(source[1:], target[1:])  # its source ends in padding
    return [*found, trace]


@pytest.mark.parametrize("piece", [1, 30, 1 << 22])
def test_pieces_are_the_whole(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few weights are computed at a time."""
    monkeypatch.setattr(reading, "PIECE", piece)
    for trace in traces():
        for found in attentions(trace):
            whole = found.whole()
            queries, keys = found.shape
            assert whole.shape == (found.heads, queries, keys)
            again = found.merged(Groups.of(queries), Groups.of(keys))
            torch.testing.assert_close(again, whole)
            share = torch.rand(queries)
            torch.testing.assert_close(found.read_by(share), share @ whole.mean(dim=0))


@settings(deadline=None, max_examples=30)
@given(budget=st.integers(1, 2000))
def test_a_budget_is_used_and_never_exceeded(budget: int) -> None:
    """As many tokens as fit: with one more a side it would be too much; never less than one."""
    found = attentions(examples.text_trace())
    side = side_limit(found, budget)

    def weights(side: int) -> int:
        return sum(a.heads * min(a.shape[0], side) * min(a.shape[1], side) for a in found)

    assert side == 1 or weights(side) <= budget
    assert weights(side + 1) > budget or side == max(max(a.shape) for a in found)


def test_a_long_text_is_read_without_forming_its_maps() -> None:
    """3,000 tokens: two maps of 2 x 9 million weights become two of 2 x 256 x 256 at most."""
    torch.manual_seed(0)
    config = replace(examples.TRANSFORMER, encoder_layers=1, decoder_layers=1, max_length=4000)
    model = Transformer(config).eval()
    source = torch.randint(3, 13, (1, 3000))
    with record() as trace, torch.no_grad():
        model(source, torch.tensor([[1, 8]]))
    view = text_view(
        trace, source=["a"] * 3000, output=["x", "y"], probabilities=[0.5, 0.5], start="<s>"
    )
    assert max(len(found.rows) for found in view.maps) == 250
    assert all(sum(row) == pytest.approx(1, abs=0.05) for row in view.maps[0].mean)
    assert "The source has 3,000 tokens" in view.notes[0]
