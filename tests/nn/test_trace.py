"""The recorder: who writes to it, and that nobody else does."""

from threading import Barrier, Thread

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.nn.attention import AttentionRecord, MultiHeadAttention, attend
from manyheads.nn.cache import KeyValueCache
from manyheads.nn.moments import CachedRecord, Moment, Search, during
from manyheads.nn.trace import Site, Trace, active, overhear, record


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


def test_a_recorder_has_a_budget() -> None:
    """What is kept counts once, however often it is seen; beyond the budget all is left out."""
    q, k = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 1000, 4)  # 16 bytes and 16,000
    with record(budget=16_032) as trace:
        for _ in range(3):
            attend(q, k, k, site=Site("encoder"))  # the same tensors again
        attend(q.clone(), k, k)
    assert (len(trace), trace.kept, trace.dropped) == (4, 16_032, 0)
    assert trace.complete() is trace
    with record(budget=16_032) as trace:
        attend(q, k, k)
        attend(q.clone(), k.clone(), k)  # does not fit
        attend(q, k, k)  # would fit, but one is missing already
    assert (len(trace), trace.kept, trace.dropped) == (1, 16_016, 2)
    with pytest.raises(UsageError, match=r"1 records fitted its 16,032 bytes, 2 more did not"):
        trace.complete()


def test_overhearing_takes_nothing_away() -> None:
    """The inner trace has what came meanwhile, the outer one all of it."""
    with record() as outer:
        look(1)
        with overhear() as inner:
            look(2)
        look(3)
    assert (len(inner), len(outer)) == (1, 3)
    with overhear() as alone:  # nobody else listens
        look()
    assert len(alone) == 1
    assert active() is None


def test_what_is_recorded_in_a_search_knows_its_moment() -> None:
    """And nothing else does; a step of a decoder then keeps only what is new."""
    ids = torch.zeros(1, 2, 3, dtype=torch.long)
    moment = Moment(Search(ids[:, 0]), torch.arange(1), ids)
    attention = MultiHeadAttention(4, 2)
    empty = KeyValueCache.empty(2, 2, 3, 2, torch.zeros(1))
    with record() as trace:
        look()
        with during(moment):
            look()
            _, cache = attention.step(torch.randn(1, 2, 4), empty)
            with overhear():
                attention.step(torch.randn(1, 2, 4), cache)
        attention.step(torch.randn(1, 2, 4), empty)
    before, meanwhile, first, second, after = trace
    assert isinstance(before, AttentionRecord)
    assert isinstance(after, AttentionRecord)
    assert before.moment is after.moment is None
    assert isinstance(meanwhile, AttentionRecord)
    assert meanwhile.moment is moment
    assert moment.step == 3
    for each in (first, second):
        assert isinstance(each, CachedRecord)
        assert each.moment is moment
        assert each.k.shape == each.q.shape == (2, 2, 1, 2)
    with during(moment):  # nobody listens
        look()
