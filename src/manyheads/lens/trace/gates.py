"""The gates of recorded recurrent layers: how far open they are at each token (T2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.recording.trace import LayerId, Trace
from manyheads.nn.rnn import RecurrentRecord

GATES = ("input", "forget", "output", "reset", "update")  # between 0, shut, and 1, open


@dataclass(frozen=True, slots=True, eq=False)
class GateMap:
    """One direction of a recurrent layer, for one example: each gate's units, in fp32."""

    layer_id: LayerId
    gates: dict[str, Float[Tensor, "token unit"]]


def gate_maps(trace: Trace) -> list[GateMap]:
    """Compute the gates of every recorded recurrent layer; a plain RNN has none.

    A decoder that reads one token at a time wrote a record a token: these become one.

    Raises:
        UsageError: the trace holds several examples, or the recorder was full.
    """
    found: dict[LayerId, list[dict[str, Tensor]]] = {}
    for record in trace.complete():
        if not isinstance(record, RecurrentRecord):
            continue
        if len(record.x) != 1:
            raise UsageError(
                f"The trace holds {len(record.x)} examples at {record.layer_id}: record one at a "
                "time."
            )
        gates = {name: gate[0].cpu() for name, gate in record.gates.items() if name in GATES}
        if gates:
            found.setdefault(record.layer_id, []).append(gates)
    return [
        GateMap(layer_id, {name: torch.cat([step[name] for step in steps]) for name in steps[0]})
        for layer_id, steps in found.items()
    ]
