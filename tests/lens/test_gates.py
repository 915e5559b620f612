"""Gates of recurrent layers and the alignment map: from a trace to what every surface shows."""

import json
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.gates import gate_maps
from manyheads.lens.view.text_view import TextView, text_view
from manyheads.models.seq2seq import Seq2Seq
from manyheads.nn.recording.trace import Trace, record
from manyheads.nn.rnn import RecurrentRecord
from tests.small import SEQ2SEQS, randomise

LSTM = SEQ2SEQS["seq2seq-lstm-attention"]
SOURCE = ["Ein", "Hund", "läuft", "</s>"]
OUTPUT = ["a", "dog", "</s>"]


def trace_of(name: str) -> Trace:
    model = randomise(Seq2Seq(SEQ2SEQS[name])).eval()
    with record() as trace, torch.no_grad():
        model(torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]]))
    return trace


def view_of(name: str) -> TextView:
    return text_view(
        trace_of(name), source=SOURCE, output=OUTPUT, probabilities=[0.5, 0.25, 1.0], start="<s>"
    )


def test_every_direction_of_every_layer_has_its_gates() -> None:
    """T2: a vector of gates a token, between shut and open."""
    found = gate_maps(trace_of("deep decoder, additive"))
    assert [str(each.layer_id) for each in found] == [
        "encoder layer 1 forward",
        "encoder layer 1 backward",
        "decoder layer 1 forward",
        "decoder layer 2 forward",
    ]
    for each, tokens, units in zip(found, (4, 4, 3, 3), (4, 4, 8, 8), strict=True):
        assert list(each.gates) == ["input", "forget", "output"]
        for gate in each.gates.values():
            assert gate.shape == (tokens, units)
            assert gate.gt(0).all()
            assert gate.lt(1).all()


@pytest.mark.parametrize(
    ("name", "gates"),
    [("seq2seq-gru", ["reset", "update"]), ("seq2seq-lstm", ["input", "forget", "output"])],
)
def test_each_cell_shows_its_own_gates(name: str, gates: list[str]) -> None:
    """T1, T2: an LSTM has three, a GRU two."""
    assert [each.gates for each in view_of(name).gates] == [gates] * 3


def test_a_plain_rnn_has_no_gates() -> None:
    """T1: nothing decides what it keeps."""
    assert view_of("seq2seq-rnn").gates == []


def test_steps_of_a_fed_decoder_become_one() -> None:
    """T2: reading one token at a time is recorded a token at a time, and shown as a whole."""
    fed = view_of("additive, fed, deep")
    assert [each.site for each in fed.gates] == [
        "encoder layer 1 forward",
        "encoder layer 1 backward",
        "encoder layer 2 forward",
        "encoder layer 2 backward",
        "decoder layer 1 forward",
        "decoder layer 2 forward",
    ]
    trace = trace_of("additive, fed, deep")
    steps = [
        entry
        for entry in trace
        if isinstance(entry, RecurrentRecord) and str(entry.layer_id) == "decoder layer 2 forward"
    ]
    assert len(steps) == 3
    expected = [step.gates["forget"].mean().item() for step in steps]
    column = fed.gates[-1].gates.index("forget")
    assert [row[column] for row in fed.gates[-1].mean] == pytest.approx(expected, abs=1e-4)


def test_tokens_are_what_was_read() -> None:
    """T2: the encoder reads the source, the decoder the start and the output before each step."""
    gates = {each.kind: each for each in view_of("seq2seq-lstm-attention").gates}
    assert gates["encoder backward"].tokens == SOURCE
    assert gates["decoder forward"].tokens == ["<s>", "a", "dog"]
    found = gates["decoder forward"]
    assert found.legend == (
        "decoder layer 1 forward, gates as each token is read, mean of 8 units; "
        "0 is shut, 1 is open"
    )
    assert [len(row) for row in found.mean] == [3, 3, 3]


def test_the_alignment_map_is_shown_as_any_other() -> None:
    """T4: source x target, one head, and a legend without heads."""
    view = view_of("seq2seq-lstm-attention")
    (found,) = view.maps
    assert (found.site, found.kind) == ("decoder layer 1 cross", "decoder cross")
    assert (found.rows, found.columns) == (OUTPUT, SOURCE)
    assert found.weights == [found.mean]
    assert found.legend == (
        "decoder layer 1, attention from the step that predicts each output word to the source; "
        "every row sums to 1"
    )
    assert json.loads(json.dumps(view.to_json())) == view.to_json()


def test_without_attention_there_is_no_map() -> None:
    """T3: one vector is no map."""
    assert attentions(trace_of("seq2seq-lstm")) == []


def test_several_examples_are_refused() -> None:
    """Like maps, gates are shown of one text."""
    model = Seq2Seq(replace(LSTM, dropout=0.0)).eval()
    batch: Tensor = torch.tensor([[5, 6], [7, 8]])
    with record() as trace:
        model(batch, batch)
    with pytest.raises(UsageError, match="2 examples at encoder layer 1 forward"):
        gate_maps(trace)


def test_tokens_that_do_not_fit_are_refused() -> None:
    """With the layer and both counts."""
    with pytest.raises(UsageError, match=r"encoder layer 1 forward have 4 tokens, but 3 labels"):
        text_view(
            trace_of("seq2seq-lstm"),
            source=SOURCE[:3],
            output=OUTPUT,
            probabilities=[0.5, 0.25, 1.0],
        )
