"""The recorder: who writes to it, and that nobody else does."""

from threading import Barrier, Thread

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.nn.attention.attention import MultiHeadAttention, attend
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.attention.softmax_record import CachedRecord
from manyheads.nn.layers.cache import KeyValueCache
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.decode_steps import DecodeStep, Search
from manyheads.nn.recording.trace import LayerId, Trace, active, record
from manyheads.nn.recording.tracking import step_context


def look(queries: int = 1, layer_id: LayerId = LayerId("encoder")) -> None:
    q, k, v = (torch.randn(1, 1, tokens, 2) for tokens in (queries, 3, 3))
    attend(q, k, v, context=AttentionContext(layer_id))


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
    layer_ids = [
        LayerId("encoder", 0, "self"),
        LayerId("decoder", 0, "self"),
        LayerId("decoder", 0, "cross"),
    ]
    with record() as trace:
        for layer_id in layer_ids:
            look(layer_id=layer_id)
    assert [entry.layer_id for entry in trace] == layer_ids


def test_sites_read_like_a_legend() -> None:
    """Layers count from 1 for people, from 0 for code."""
    assert str(LayerId("decoder", 1, "cross")) == "decoder layer 2 cross"
    assert str(LayerId()) == "layer 1 self"


def test_records_are_detached() -> None:
    """A kept trace does not keep the graph of the forward pass."""
    attention = MultiHeadAttention(4, 2)
    with record() as trace:
        out = attention(torch.randn(1, 3, 4))
    (kept,) = trace
    assert isinstance(kept, SoftmaxRecord)
    assert out.requires_grad
    assert not kept.q.requires_grad
    assert not kept.weights().requires_grad


def test_the_inner_recorder_takes_the_records() -> None:
    """Nested recorders: the inner one hears alone, then the outer one goes on."""
    with record() as outer:
        look(1)
        with record() as inner:
            look(2)
            look(2)
        look(3)
    assert (len(outer), len(inner)) == (2, 2)
    assert [entry.q.shape[2] for entry in outer if isinstance(entry, SoftmaxRecord)] == [1, 3]


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
        shapes = [entry.q.shape[2] for entry in trace if isinstance(entry, SoftmaxRecord)]
        assert shapes == [queries] * queries


def test_a_recorder_has_a_budget() -> None:
    """What is kept counts once, however often it is seen; beyond the budget all is left out."""
    q, k = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 1000, 4)  # 16 bytes and 16,000
    with record(budget=16_032) as trace:
        for _ in range(3):
            attend(q, k, k, context=AttentionContext(LayerId("encoder")))  # the same tensors again
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


def test_what_is_recorded_in_a_search_knows_its_step() -> None:
    """And nothing else does; a step of a decoder then keeps only what is new."""
    ids = torch.zeros(1, 2, 3, dtype=torch.long)
    step = DecodeStep(Search(ids[:, 0]), torch.arange(1), ids)
    attention = MultiHeadAttention(4, 2)
    empty = KeyValueCache.empty(2, 2, 3, 2, torch.zeros(1))
    with record() as trace:
        look()
        with step_context(step):
            look()
            _, cache = attention.step(torch.randn(1, 2, 4), empty)
            attention.step(torch.randn(1, 2, 4), cache)
        attention.step(torch.randn(1, 2, 4), empty)
    before, meanwhile, first, second, after = trace
    assert isinstance(before, SoftmaxRecord)
    assert isinstance(after, SoftmaxRecord)
    assert before.decode_step is after.decode_step is None
    assert isinstance(meanwhile, SoftmaxRecord)
    assert meanwhile.decode_step is step
    assert step.step == 3
    shapes = []
    for each in (first, second):
        assert isinstance(each, CachedRecord)
        assert each.decode_step is step
        assert each.k.shape == each.q.shape == (2, 2, 1, 2)
        shapes.append(each.shape)
    assert tuple(shapes) == ((2, 2, 1, 1), (2, 2, 1, 2))
    assert repr(second) == "<CachedRecord layer 1 self: batch 2, 2 heads, 1 x 2>"
    with step_context(step):  # nobody listens
        look()
