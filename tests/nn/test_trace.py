"""The recorder: who writes to it, and that nobody else does."""

from threading import Barrier, Thread

import pytest
import torch

from manyheads.nn.attention import AttentionRecord, MultiHeadAttention, attend
from manyheads.nn.trace import Site, Trace, active, record


def look(queries: int = 1, site: Site = Site("encoder")) -> None:
    attend(
        torch.randn(1, 1, queries, 2), torch.randn(1, 1, 3, 2), torch.randn(1, 1, 3, 2), site=site
    )


def test_nothing_is_recorded_unless_asked_for() -> None:
    """A recorder is open only inside its `with`."""
    assert active() is None
    with record() as trace:
        assert active() is trace
        look()
    look()
    assert active() is None
    assert len(trace) == 1


def test_records_come_in_order_with_their_sites() -> None:
    """A trace is the walk through the model."""
    sites = [Site("encoder", 0, "self"), Site("decoder", 0, "self"), Site("decoder", 0, "cross")]
    with record() as trace:
        for site in sites:
            look(site=site)
    assert [entry.site for entry in trace] == sites


def test_sites_read_like_a_legend() -> None:
    """Layers count from 1 for people, from 0 for code."""
    assert str(Site("decoder", 1, "cross")) == "decoder layer 2 cross"
    assert str(Site()) == "layer 1 self"


def test_records_are_detached() -> None:
    """A kept trace does not keep the graph of the forward pass."""
    attention = MultiHeadAttention(4, 2)
    with record() as trace:
        out = attention(torch.randn(1, 3, 4))
    (kept,) = trace
    assert isinstance(kept, AttentionRecord)
    assert out.requires_grad
    assert not kept.q.requires_grad
    assert not kept.weights.requires_grad


def test_the_inner_recorder_takes_the_records() -> None:
    """Nested recorders: the inner one hears alone, then the outer one goes on."""
    with record() as outer:
        look(1)
        with record() as inner:
            look(2)
            look(2)
        look(3)
    assert (len(outer), len(inner)) == (2, 2)
    assert [entry.q.shape[2] for entry in outer if isinstance(entry, AttentionRecord)] == [1, 3]


def test_an_error_closes_the_recorder() -> None:
    """What failed inside a recorder does not record for ever."""
    with pytest.raises(RuntimeError, match="stop"), record():
        raise RuntimeError("stop")
    assert active() is None


def test_each_thread_has_its_own_recorder() -> None:
    """Two requests of a server never see each other's maps, nor those of a third."""
    barrier = Barrier(3, timeout=10)
    traces: dict[int, Trace] = {}

    def serve(queries: int) -> None:
        with record() as trace:
            traces[queries] = trace
            barrier.wait()  # both recorders are open now
            for _ in range(queries):
                look(queries)
            barrier.wait()

    threads = [Thread(target=serve, args=(queries,)) for queries in (2, 3)]
    for thread in threads:
        thread.start()
    barrier.wait()
    look(5)  # from a thread without a recorder
    barrier.wait()
    for thread in threads:
        thread.join()
    for queries, trace in traces.items():
        shapes = [entry.q.shape[2] for entry in trace if isinstance(entry, AttentionRecord)]
        assert shapes == [queries] * queries
