"""From a recorded trace to the gates of recurrent layers: how far open, token by token (T2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.recurrent import RecurrentRecord
from manyheads.nn.trace import Site, Trace

GATES = ("input", "forget", "output", "reset", "update")  # between 0, shut, and 1, open


@dataclass(frozen=True, slots=True, eq=False)
class GateMap:
    """One direction of a recurrent layer, for one example: each gate's units, in fp32."""

    site: Site
    gates: dict[str, Float[Tensor, "token unit"]]


def gate_maps(trace: Trace) -> list[GateMap]:
    """Compute the gates of every recorded recurrent layer; a plain RNN has none.

    A decoder that reads one token at a time wrote a record a token: these become one.

    Raises:
        UsageError: the trace holds several examples, or the recorder was full.
    """
    found: dict[Site, list[dict[str, Tensor]]] = {}
    for record in trace.complete():
        if not isinstance(record, RecurrentRecord):
            continue
        if len(record.x) != 1:
            raise UsageError(
                f"The trace holds {len(record.x)} examples at {record.site}: record one at a time."
            )
        gates = {name: gate[0].cpu() for name, gate in record.gates.items() if name in GATES}
        if gates:
            found.setdefault(record.site, []).append(gates)
    return [
        GateMap(site, {name: torch.cat([step[name] for step in steps]) for name in steps[0]})
        for site, steps in found.items()
    ]
