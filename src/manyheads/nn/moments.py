"""When in a search something was recorded, for an open recorder to say whose tokens are meant.

A search computes many beams of many sentences, one token at a time; beams are dropped, copied and
put in another order on the way. Whoever runs one tells the recorder at every step what each beam
has read, and everything recorded in that step takes this along (compare `places.py`). So what
belongs to one output can be put together afterwards: see `lens/decoding.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from manyheads.nn.trace import Site, active


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """One search; what it began with."""

    sources: Int[Tensor, "sentence source"]  # token ids, padded


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One step of a search.

    Rows of what is recorded in it are sentences, or sentences x beams, in the order of `read`.
    """

    search: Search
    sentences: Int[Tensor, " sentence"]  # those that are left, as rows of the search's sources
    read: Int[Tensor, "sentence beam token"]  # what each beam has read, the start token first

    @property
    def step(self) -> int:
        """Count steps from 1; 0 is when the sources are read."""
        return self.read.shape[2]


@dataclass(frozen=True, slots=True, eq=False)
class CandidateRecord:
    """The likeliest next tokens of every beam, as the model has them, before rules of a search."""

    site: Site
    tokens: Int[Tensor, "sentence beam candidate"]  # the likeliest first
    log_probabilities: Float[Tensor, "sentence beam candidate"]
    moment: Moment


@contextmanager
def during(moment: Moment) -> Iterator[None]:
    """Let what is recorded meanwhile belong to a moment."""
    trace = active()
    if trace is None:
        yield
        return
    outer, trace.moment = trace.moment, moment
    try:
        yield
    finally:
        trace.moment = outer


@dataclass(frozen=True, slots=True)
class CachedRecord:
    """What a recorder keeps of self-attention in one step of a search: only what is new.

    The other keys are in the records before it. Each step's keys as they lie in the cache would
    be a copy of the cache, as beams are put in another order.
    """

    site: Site
    q: Float[Tensor, "row head 1 size"]
    k: Float[Tensor, "row head 1 size"]
    moment: Moment
