"""Recurrent cells: equations by hand, torch's kernels beside them, padding, and the record."""

import math

import pytest
import torch
from torch import Tensor, nn

from manyheads.nn.recording.decode_steps import DecodeStep, Search
from manyheads.nn.recording.trace import LayerId, record
from manyheads.nn.recording.tracking import step_context
from manyheads.nn.rnn import (
    GRU,
    LSTM,
    RNN,
    Cell,
    Recurrent,
    RecurrentRecord,
    RecurrentStack,
    Weights,
)
from tests.small import randomise

CELLS = {"rnn": RNN, "lstm": LSTM, "gru": GRU}
cells = pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
directions = pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "both"])


def close(actual: Tensor, expected: Tensor, atol: float = 1e-6) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def make(cell: Cell, *, bidirectional: bool = False) -> Recurrent:
    return randomise(Recurrent(cell, 3, 4, bidirectional=bidirectional))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def weights(w: list[float], u: list[float], w_bias: list[float], u_bias: list[float]) -> Weights:
    """Of a cell with one input and one unit: a row a gate."""
    return Weights(
        torch.tensor(w)[:, None],
        torch.tensor(u)[:, None],
        torch.tensor(w_bias),
        torch.tensor(u_bias),
    )


# --- By hand: one input, one unit ---------------------------------------------------------------

X, H, C = torch.tensor([[2.0]]), torch.tensor([[0.5]]), torch.tensor([[-1.0]])


def test_rnn_by_hand() -> None:
    """T1: h' = tanh(1 * 2 - 3 * .5 + .25 - .75) = tanh(0) = 0, and one step further from there."""
    cell = weights([1.0], [-3.0], [0.25], [-0.75])
    assert RNN.equations(X, (H,), cell)["hidden"].item() == 0.0
    after = RNN.equations(X, (torch.zeros(1, 1),), cell)["hidden"]
    assert after.item() == pytest.approx(math.tanh(1.5))


def test_lstm_by_hand() -> None:
    """T2: what enters, what stays in, what leaves."""
    cell = weights(
        [0.5, -1.0, 1.0, 0.0], [2.0, 0.0, -2.0, 4.0], [0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.5, -1.0]
    )
    i = sigmoid(0.5 * 2 + 2 * 0.5 - 1)  # sigmoid(1)
    f = sigmoid(-1 * 2 + 1)  # sigmoid(-1)
    g = math.tanh(2 - 2 * 0.5 + 0.5)  # tanh(1.5)
    o = sigmoid(4 * 0.5 - 1)  # sigmoid(1)
    c = f * -1.0 + i * g
    expected = {"input": i, "forget": f, "candidate": g, "output": o}
    expected |= {"cell": c, "hidden": o * math.tanh(c)}
    found = LSTM.equations(X, (H, C), cell)
    assert {name: gate.item() for name, gate in found.items()} == pytest.approx(expected)


def test_lstm_remembers_while_its_forget_gate_is_open() -> None:
    """T2: input gate shut, forget gate open: the cell keeps its value through 1,000 tokens."""
    cell = weights([0.0] * 4, [0.0] * 4, [-50.0, 50.0, 0.0, 50.0], [0.0] * 4)
    state: tuple[Tensor, ...] = (H, torch.tensor([[0.75]]))
    for _ in range(1000):
        gates = LSTM.equations(torch.randn(1, 1), state, cell)
        state = (gates["hidden"], gates["cell"])
    assert state[1].item() == 0.75
    assert state[0].item() == pytest.approx(math.tanh(0.75))


def test_gru_by_hand() -> None:
    """T1: the reset gate acts on U h + b, the update gate is the share of the past that stays."""
    cell = weights([1.0, -1.0, 0.5], [-2.0, 2.0, 4.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    r = sigmoid(2 - 2 * 0.5)  # sigmoid(1)
    z = sigmoid(-2 + 2 * 0.5)  # sigmoid(-1)
    n = math.tanh(0.5 * 2 + r * (4 * 0.5 + 1))
    expected = {"reset": r, "update": z, "candidate": n, "hidden": (1 - z) * n + z * 0.5}
    found = GRU.equations(X, (H,), cell)
    assert {name: gate.item() for name, gate in found.items()} == pytest.approx(expected)


# --- The kernels compute the equations ----------------------------------------------------------


@cells
def test_a_step_is_the_equations(cell: Cell) -> None:
    """T1, T2: torch's kernel of one step, on random weights."""
    layer, x = make(cell), torch.randn(5, 3)
    state = tuple(torch.randn(5, 4) for _ in cell.state)
    after = layer.step(x, state)
    gates = cell.equations(x, state, layer.weights[0])
    assert len(after) == len(cell.state)
    for name, value in zip(cell.state, after, strict=True):
        close(value, gates[name])


@cells
def test_steps_are_the_sequence(cell: Cell) -> None:
    """T17: one token at a time gives what the whole sequence gives, from any first state."""
    layer, x = make(cell), torch.randn(2, 6, 3)
    first = tuple(torch.randn(2, 4) for _ in cell.state)
    outputs, last = layer(x, first)
    state = first
    for token in range(6):
        state = layer.step(x[:, token], state)
        close(state[0], outputs[:, token])
    for one_by_one, at_once in zip(state, last, strict=True):
        close(one_by_one, at_once)


@cells
@directions
def test_the_layer_equals_torch(cell: Cell, bidirectional: bool) -> None:
    """T1: torch.nn's own module with the same weights, all sequences of full length."""
    theirs = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
    kind = next(name for name, known in CELLS.items() if known is cell)
    layer = make(cell, bidirectional=bidirectional)
    reference = theirs[kind](3, 2 if bidirectional else 4, bidirectional=bidirectional)
    reference.load_state_dict(layer.kernel.state_dict())
    x = torch.randn(2, 5, 3)
    outputs, _ = layer(x, lengths=torch.tensor([5, 5]))
    expected, _ = reference(x.transpose(0, 1))
    close(outputs, expected.transpose(0, 1))


# --- Padding ------------------------------------------------------------------------------------


@cells
@directions
def test_padding_takes_no_part(cell: Cell, bidirectional: bool) -> None:
    """A sequence gets the same states alone and beside a longer one, whatever stands behind it."""
    layer = make(cell, bidirectional=bidirectional)
    x, lengths = torch.randn(3, 6, 3), torch.tensor([4, 6, 1])
    outputs, last = layer(x, lengths=lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, its_last = layer(x[row : row + 1, :length])
        close(outputs[row : row + 1, :length], alone)
        for beside, single in zip(last, its_last, strict=True):
            close(beside[row : row + 1], single)
        assert outputs[row, length:].eq(0).all()
    changed = x.clone()
    changed[0, 4:] = 1e6
    again, _ = layer(changed, lengths=lengths)
    assert torch.equal(again, outputs)


@cells
def test_the_last_state_is_the_states_at_both_ends(cell: Cell) -> None:
    """T3: forward after the last real token, backward after the first."""
    layer = make(cell, bidirectional=True)
    outputs, last = layer(torch.randn(1, 5, 3), lengths=torch.tensor([3]))
    close(last[0], torch.cat((outputs[:, 2, :2], outputs[:, 0, 2:]), dim=1))


# --- The record ---------------------------------------------------------------------------------


@cells
@directions
def test_gates_of_the_record_give_the_states(cell: Cell, bidirectional: bool) -> None:
    """T2: what is read from a trace is what the kernel computed; padding has none."""
    layer = make(cell, bidirectional=bidirectional)
    x, lengths = torch.randn(3, 6, 3), torch.tensor([4, 6, 1])
    plain, _ = layer(x, lengths=lengths)
    with record() as trace:
        outputs, last = layer(x, lengths=lengths)
    assert torch.equal(outputs, plain)
    entries = [entry for entry in trace if isinstance(entry, RecurrentRecord)]
    assert [str(entry.layer_id) for entry in entries] == ["layer 1 forward", "layer 1 backward"][
        : len(trace)
    ]
    gates = [entry.gates for entry in entries]
    close(torch.cat([found["hidden"] for found in gates], dim=-1), outputs)
    for found, state in zip(gates, last[-1].chunk(len(gates), dim=-1), strict=True):
        ends = found[cell.state[-1]]
        if found is gates[0]:  # the state after the last real token, of an LSTM the cell
            close(ends[torch.arange(3), lengths - 1], state)
        else:
            close(ends[:, 0], state)
        for name, gate in found.items():
            assert gate.shape == (3, 6, layer.kernel.hidden_size), name
            assert gate[0, 4:].eq(0).all()
    for name in {"input", "forget", "output", "reset", "update"} & gates[0].keys():
        real = torch.arange(6) < lengths[:, None]
        assert gates[0][name][real].gt(0).all()  # sigmoids
        assert gates[0][name][real].lt(1).all()


@cells
def test_steps_are_recorded(cell: Cell) -> None:
    """T2: decoding writes a record a step, of one token."""
    layer, x = make(cell), torch.randn(2, 3)
    state = tuple(torch.randn(2, 4) for _ in cell.state)
    plain = layer.step(x, state)
    with record() as trace:
        after = layer.step(x, state)
    (entry,) = trace
    assert isinstance(entry, RecurrentRecord)
    for name, value, unrecorded in zip(cell.state, after, plain, strict=True):
        assert torch.equal(value, unrecorded)
        close(entry.gates[name][:, 0], value)


# --- Layers in a row, fresh weights -------------------------------------------------------------


@cells
def test_a_stack_is_its_layers(cell: Cell) -> None:
    """The states of one layer are what the next reads; every layer knows its place."""
    stack = randomise(RecurrentStack("decoder", [Recurrent(cell, 3, 4), Recurrent(cell, 4, 4)]))
    x = torch.randn(2, 5, 3)
    below, first = stack.layers[0](x)
    above, second = stack.layers[1](below)
    outputs, last = stack(x)
    close(outputs, above)
    for expected, found in zip((*first, *second), (*last[0], *last[1]), strict=True):
        close(found, expected)
    states = [tuple(torch.zeros(2, 4) for _ in cell.state) for _ in range(2)]
    for token in range(5):
        hidden, states = stack.step(x[:, token], states)
        close(hidden, outputs[:, token])
    assert stack.layers[1].layer_ids == (
        LayerId("decoder", 1, "forward"),
        LayerId("decoder", 1, "backward"),
    )


@cells
def test_steps_are_joined_to_one_record(cell: Cell) -> None:
    """The records of a token each give the gates of the text, which belongs to no single step."""
    stack = randomise(RecurrentStack("decoder", [Recurrent(cell, 3, 4)]))
    x = torch.randn(1, 5, 3)
    state = tuple(torch.zeros(1, 4) for _ in cell.state)
    layer = stack.layers[0]
    search = Search(torch.zeros(1, 2, dtype=torch.long))
    with record() as trace:
        for token in range(5):
            step = DecodeStep(search, torch.arange(1), torch.zeros(1, 1, token, dtype=torch.long))
            with step_context(step):
                state = layer.step(x[:, token], state)
    first, *later = (entry for entry in trace if isinstance(entry, RecurrentRecord))
    assert first.decode_step is not None
    joined = first.join(later)
    assert joined.decode_step is None
    assert joined.layer_id == first.layer_id
    with record() as trace:
        layer(x)
    (whole,) = (entry for entry in trace if isinstance(entry, RecurrentRecord))
    for name, gate in whole.gates.items():
        close(joined.gates[name], gate)


def test_dropout_is_between_layers_only() -> None:
    """Zaremba et al. 2014: what is carried in time is never dropped."""
    torch.manual_seed(0)
    layers = [Recurrent(RNN, 3, 4), Recurrent(RNN, 4, 4)]
    stack = RecurrentStack("encoder", layers, dropout=0.5)
    x = torch.randn(2, 5, 3)
    with record() as trace:
        stack(x)
    first, second = (entry for entry in trace if isinstance(entry, RecurrentRecord))
    below = first.gates["hidden"]
    close(below, layers[0](x)[0])  # nothing of the first layer is dropped inside it
    kept = second.x != 0
    close(second.x[kept], 2 * below[kept])
    assert 0.2 < kept.float().mean() < 0.8


@cells
def test_fresh_weights(cell: Cell) -> None:
    """Orthogonal recurrence and zero biases, but an LSTM's forget gate begins open."""
    layer = Recurrent(cell, 3, 8, bidirectional=True)
    layer.reset_parameters()
    count = {RNN: 1, LSTM: 4, GRU: 3}[cell]
    for w, u, w_bias, u_bias in layer.weights:
        for square in u.chunk(count):
            close(square @ square.T, torch.eye(4), atol=1e-5)
        assert w.abs().max() <= math.sqrt(6 / (3 + 4))
        assert u_bias.eq(0).all()
        expected = torch.zeros(count, 4)
        if cell is LSTM:
            expected[1] = 1.0  # input, forget, candidate, output
        assert torch.equal(w_bias, expected.flatten())
