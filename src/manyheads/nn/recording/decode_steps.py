"""The step of a search in which something was recorded.

A search computes many beams of many sentences, one token at a time; beams are dropped, copied and
reordered on the way. At every step the search tells the recorder which tokens each beam has read
(`tracking.step_context`), and everything recorded in that step refers to it. From this
`lens/trace/decoding_trace.py` puts together what belongs to one output.
"""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from manyheads.nn.shapes import Sources


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """One search, identified by its sources."""

    sources: Sources  # token ids, padded; or images


@dataclass(frozen=True, slots=True, eq=False)
class DecodeStep:
    """One step of a search.

    Batch rows of what is recorded in it are sentences, or sentences x beams, in the order of
    `read`.
    """

    search: Search
    sentences: Int[Tensor, " sentence"]  # unfinished ones, as rows of the search's sources
    read: Int[Tensor, "sentence beam token"]  # tokens that each beam has read, the start first

    @property
    def step(self) -> int:
        """The number of the step, from 1; in step 0 the sources are encoded."""
        return self.read.shape[2]
