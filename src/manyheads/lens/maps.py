"""From a recorded trace to attention maps: one a site, with all its heads."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from manyheads.lens.reading import attentions
from manyheads.nn.attention import AttentionRecord
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
    """Compute the whole map of every recorded attention, in the order in which they ran.

    Raises:
        UsageError: the trace holds several examples, or several passes through one attention.
    """
    maps = []
    for found in attentions(trace):
        record = found.record
        # The maps of all windows in one.
        weights = record.whole if isinstance(record, AttentionRecord) else record.weights
        maps.append(AttentionMap(record.site, weights[0].cpu()))
    return maps
