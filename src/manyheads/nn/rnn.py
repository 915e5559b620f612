"""Recurrent layers: one token after another, with a state in between (atlas T1, T2).

Each cell is here twice. Its equations are to be read beside the paper, and give the gates when
a record is read. torch's kernels compute the output: over a whole sequence at once (cuDNN,
oneDNN), or one step at a time with the same weights. Tests hold the two equal.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from manyheads.nn.editing.seam import STATE, at_tokens, is_open, visit
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.trace import LayerId, active
from manyheads.nn.shapes import check_axes

State = tuple[Tensor, ...]  # (hidden,), or of an LSTM (hidden, cell); each (row, hidden)
Gates = dict[str, Tensor]  # by name, what a cell computes in one step; the new state is among them


class Weights(NamedTuple):
    """One direction of a layer: W and U of the gates, one below the other, and their biases."""

    w: Float[Tensor, "gates input"]
    u: Float[Tensor, "gates hidden"]
    w_bias: Float[Tensor, " gates"]
    u_bias: Float[Tensor, " gates"]


def rnn_equations(x: Float[Tensor, "row input"], state: State, weights: Weights) -> Gates:
    """Compute h' = tanh(W x + U h + b): the simple recurrent network (Elman 1990)."""
    (h,) = state
    return {"hidden": (_from_input(x, weights) + _from_hidden(h, weights)).tanh()}


def lstm_equations(x: Float[Tensor, "row input"], state: State, weights: Weights) -> Gates:
    """Let gates decide what enters, stays in and leaves the cell.

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000. The gates i, f, o
    are sigmoid(W x + U h + b), each with weights of its own; the candidate g is the same with tanh.
    """
    h, c = state
    i, f, g, o = (_from_input(x, weights) + _from_hidden(h, weights)).chunk(4, dim=-1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    c = f * c + i * g
    h = o * c.tanh()
    return {"input": i, "forget": f, "candidate": g, "output": o, "cell": c, "hidden": h}


def gru_equations(x: Float[Tensor, "row input"], state: State, weights: Weights) -> Gates:
    """Let one gate reset the past and another decide how much of it to keep (Cho et al. 2014, 2.3).

    z here is the share that is kept, as in that paper's equation 7. The reset gate acts on U h, as
    in cuDNN, where the paper's equation 8 lets it act on h: then one product serves all gates.
    """
    (h,) = state
    from_x, from_h = _from_input(x, weights).chunk(3, dim=-1), _from_hidden(h, weights).chunk(3, -1)
    r = (from_x[0] + from_h[0]).sigmoid()
    z = (from_x[1] + from_h[1]).sigmoid()
    n = (from_x[2] + r * from_h[2]).tanh()
    return {"reset": r, "update": z, "candidate": n, "hidden": (1 - z) * n + z * h}


def _from_input(x: Tensor, weights: Weights) -> Tensor:
    return F.linear(x, weights.w, weights.w_bias)


def _from_hidden(h: Tensor, weights: Weights) -> Tensor:
    return F.linear(h, weights.u, weights.u_bias)


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of cell: its equations, and torch's kernels for a sequence and for a step."""

    state: tuple[str, ...]  # what is carried to the next token, as named in the equations
    equations: Callable[[Tensor, State, Weights], Gates]
    sequence: type[nn.RNN] | type[nn.LSTM] | type[nn.GRU]
    step: Callable[[Tensor, State, Weights], State]


RNN = Cell(
    ("hidden",),
    rnn_equations,
    nn.RNN,
    lambda x, state, weights: (torch.rnn_tanh_cell(x, state[0], *weights),),
)
LSTM = Cell(
    ("hidden", "cell"),
    lstm_equations,
    nn.LSTM,
    lambda x, state, weights: torch.lstm_cell(x, state, *weights),
)
GRU = Cell(
    ("hidden",),
    gru_equations,
    nn.GRU,
    lambda x, state, weights: (torch.gru_cell(x, state[0], *weights),),
)
CellName = Literal["rnn", "lstm", "gru"]
CELLS: dict[CellName, Cell] = {"rnn": RNN, "lstm": LSTM, "gru": GRU}


@dataclass(frozen=True, slots=True)
class RecurrentRecord:
    """Inputs of one direction of a layer; the gates are computed when they are read.

    The weights are the layer's own, not a copy: read a record before they change.
    """

    layer_id: LayerId
    cell: Cell
    x: Float[Tensor, "batch token input"]
    state: State  # before the first token
    weights: Weights
    lengths: Int[Tensor, " batch"] | None  # tokens that are not padding; all if None
    backward: bool
    decode_step: DecodeStep | None = None  # of a search

    @property
    def gates(self) -> dict[str, Float[Tensor, "batch token hidden"]]:
        """Every gate and state by name, a vector a token, in fp32; zeros on padding."""
        weights = Weights(*(each.float() for each in self.weights))
        state = tuple(each.float() for each in self.state)
        tokens = range(self.x.shape[1])
        steps: list[Gates] = []
        for token in reversed(tokens) if self.backward else tokens:
            gates = self.cell.equations(self.x[:, token].float(), state, weights)
            if self.lengths is not None:
                real = (token < self.lengths)[:, None]
                gates = {name: gate.where(real, 0.0) for name, gate in gates.items()}
                # Padding leaves the state as it is: a backward layer begins at the last real token.
                state = tuple(
                    gates[name].where(real, old)
                    for name, old in zip(self.cell.state, state, strict=True)
                )
            else:
                state = tuple(gates[name] for name in self.cell.state)
            steps.append(gates)
        if self.backward:
            steps.reverse()
        return {name: torch.stack([gates[name] for gates in steps], dim=1) for name in steps[0]}

    def select(self, row: int) -> "RecurrentRecord":
        """Take one row of the batch, without its padding."""
        own = slice(row, row + 1)
        length = None if self.lengths is None else int(self.lengths[row])
        state = tuple(each[own] for each in self.state)
        return replace(self, x=self.x[own, :length], state=state, lengths=None)

    def join(self, later: Sequence["RecurrentRecord"]) -> "RecurrentRecord":
        """Join the steps of one row."""
        x = torch.cat([self.x, *(each.x for each in later)], dim=1)
        return replace(self, x=x, decode_step=None)


class Recurrent(nn.Module):
    """One layer, in one direction or in both (Schuster and Paliwal 1997).

    With both, each direction has half of the width and the two are concatenated, so a layer is
    equally wide either way.
    """

    def __init__(self, cell: Cell, size: int, hidden: int, *, bidirectional: bool = False) -> None:
        super().__init__()
        self.cell = cell
        self.kernel = cell.sequence(
            size, hidden // (1 + bidirectional), batch_first=True, bidirectional=bidirectional
        )
        self.layer_ids = (LayerId(kind="forward"), LayerId(kind="backward"))  # set by the stack

    def forward(
        self,
        x: Float[Tensor, "batch token input"],
        state: State | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch token hidden"], State]:
        """Read whole sequences; return every hidden state and the last state.

        Args:
            x: vectors of tokens.
            state: before the first token; zeros if None.
            lengths: where each sequence ends, so that padding behind it takes no part: its hidden
                states are zeros, and the last state is that after the last real token. A layer
                that goes forward only and whose last state is of no use needs none.

        Returns:
            The hidden state at every token, and the state after the last (of both directions).
        """
        check_axes(x, "batch token input")
        if state is None:
            width = self.kernel.hidden_size * len(self.kernel.all_weights)
            state = tuple(x.new_zeros(x.shape[0], width) for _ in self.cell.state)
        self._record(x, state, lengths)
        if lengths is not None and torch.compiler.is_exporting():
            return self._unrolled(x, state, lengths)
        given = tuple(map(self._divided, state))
        hx = given if len(given) > 1 else given[0]
        if lengths is None:
            outputs, last = self.kernel(x, hx)
        else:
            ends = lengths.clamp(min=1).cpu()  # an empty sequence reads one vector of padding
            packed = pack_padded_sequence(x, ends, batch_first=True, enforce_sorted=False)
            packed, last = self.kernel(packed, hx)
            outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        last = last if isinstance(last, tuple) else (last,)
        return outputs, tuple(each.transpose(0, 1).flatten(1) for each in last)

    def _unrolled(
        self, x: Float[Tensor, "batch token input"], state: State, lengths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch token hidden"], State]:
        """Read token by token: the sizes in a packed sequence are data, which no graph can hold."""
        outputs, last = [], []
        for direction, weights in enumerate(self.weights):
            now = tuple(self._divided(each)[direction] for each in state)
            hidden = []
            for token in reversed(range(x.shape[1])) if direction else range(x.shape[1]):
                real = (token < lengths.clamp(min=1))[:, None]
                new = self.cell.step(x[:, token], now, weights)
                hidden.append(new[0].where(real, 0.0))
                now = tuple(a.where(real, b) for a, b in zip(new, now, strict=True))
            outputs.append(torch.stack(hidden[::-1] if direction else hidden, dim=1))
            last.append(now)
        return torch.cat(outputs, dim=-1), tuple(map(torch.hstack, zip(*last, strict=True)))

    def step(self, x: Float[Tensor, "row input"], state: State) -> State:
        """Read one token a row, forward; return the state after it, its hidden state first."""
        self._record(x[:, None], state, None)
        return self.cell.step(x, state, self.weights[0])

    @property
    def weights(self) -> tuple[Weights, ...]:
        """The weights of each direction."""
        return tuple(Weights(*direction) for direction in self.kernel.all_weights)

    def reset_parameters(self) -> None:
        """Draw orthogonal U (Saxe et al. 2014) and Xavier W, gate by gate; zero biases.

        But an LSTM's forget gate begins open, with bias 1 (Jozefowicz et al. 2015).
        """
        gates = self.kernel.all_weights[0][0].shape[0] // self.kernel.hidden_size
        for weights in self.weights:
            for w, u in zip(weights.w.chunk(gates), weights.u.chunk(gates), strict=True):
                nn.init.xavier_uniform_(w)
                nn.init.orthogonal_(u)
            nn.init.zeros_(weights.w_bias)
            nn.init.zeros_(weights.u_bias)
            if self.cell is LSTM:
                nn.init.ones_(weights.w_bias.chunk(gates)[1])

    def _divided(self, state: Float[Tensor, "row hidden"]) -> Float[Tensor, "direction row half"]:
        return state.unflatten(1, (-1, self.kernel.hidden_size)).transpose(0, 1).contiguous()

    def _record(self, x: Tensor, state: State, lengths: Tensor | None) -> None:
        trace = active()
        if trace is None:
            return
        divided = tuple(self._divided(each.detach()) for each in state)
        for direction, weights in enumerate(self.weights):
            trace.add(
                RecurrentRecord(
                    self.layer_ids[direction],
                    self.cell,
                    x.detach(),
                    tuple(each[direction] for each in divided),
                    Weights(*(each.detach() for each in weights)),
                    lengths,
                    backward=direction == 1,
                    decode_step=trace.decode_step,
                )
            )


class RecurrentStack(nn.Module):
    """Layers in a row, with dropout between them but not in time (Zaremba et al. 2014)."""

    def __init__(self, stack: str, layers: Iterable[Recurrent], *, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers: Sequence[Recurrent] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.dropout = Dropout(dropout)
        for number, layer in enumerate(self.layers):
            layer.layer_ids = (
                LayerId(stack, number, "forward"),
                LayerId(stack, number, "backward"),
            )

    def forward(
        self,
        x: Float[Tensor, "batch token input"],
        states: Sequence[State] | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch token hidden"], list[State]]:
        """Read whole sequences; return the top layer's hidden states and each layer's last."""
        last = []
        at_tokens()
        x = self._visited(x, -1)
        for number, layer in enumerate(self.layers):
            x = self.dropout(x) if number else x
            x, state = layer(x, None if states is None else states[number], lengths)
            x = self._visited(x, number)
            last.append(state)
        return x, last

    def step(
        self, x: Float[Tensor, "row input"], states: Sequence[State]
    ) -> tuple[Float[Tensor, "row hidden"], list[State]]:
        """Read one token a row; return the top layer's hidden state and each layer's state."""
        after = []
        x = self._visited(x[:, None], -1)[:, 0] if is_open() else x
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            after.append(layer.step(self.dropout(x) if number else x, state))
            x = after[-1][0]
            x = self._visited(x[:, None], number)[:, 0] if is_open() else x
        return x, after

    def _visited(self, x: Tensor, number: int) -> Tensor:
        """Pass the site behind a layer: what the layers above read, not its own next state."""
        if not is_open():
            return x
        return visit(replace(self.layers[0].layer_ids[0], layer=number), STATE, x)
