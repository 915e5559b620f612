"""From a recorded trace to attention maps: one a site, with all its heads."""

from collections.abc import Iterable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.alignment import ScoreRecord
from manyheads.nn.attention import AttentionRecord
from manyheads.nn.linear_attention import ImpliedRecord
from manyheads.nn.trace import Site, Trace


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMap:
    """What the heads of one attention look at, for one example, in fp32."""

    site: Site
    weights: Float[Tensor, "head query key"]

    @property
    def heads(self) -> int:
        """Count the heads."""
        return self.weights.shape[0]

    @property
    def mean(self) -> Float[Tensor, "query key"]:
        """The mean over heads: again a distribution over keys for each query."""
        return self.weights.mean(dim=0)


def attention_maps(trace: Trace) -> list[AttentionMap]:
    """Compute the map of every recorded attention, in the order in which they ran.

    Raises:
        UsageError: the trace holds several examples, or several passes through one attention.
    """
    maps: dict[Site, AttentionMap] = {}
    for record in trace:
        if isinstance(record, AttentionRecord):
            weights = record.whole.cpu()  # the maps of all windows in one
        elif isinstance(record, ScoreRecord | ImpliedRecord):
            weights = record.weights.cpu()
        else:
            continue
        if len(weights) != 1:
            raise UsageError(
                f"The trace holds {len(weights)} examples at {record.site}: record one at a time."
            )
        if record.site in maps:
            raise UsageError(
                f"The trace holds several passes through {record.site}: record one forward pass, "
                "for a translation the one that reads the whole output at once."
            )
        maps[record.site] = AttentionMap(record.site, weights[0])
    return list(maps.values())


def select(maps: Iterable[AttentionMap], kind: str) -> list[AttentionMap]:
    """Keep the maps of one kind: "encoder self", "decoder self" or "decoder cross"."""
    return [found for found in maps if f"{found.site.stack} {found.site.kind}" == kind]
