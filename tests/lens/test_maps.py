import pytest
import torch

from manyheads.errors import UsageError
from manyheads.lens.trace.attention_reader import attentions
from manyheads.nn.recording.trace import Trace, record
from tests.lens import examples


def test_maps_come_in_the_order_in_which_the_attentions_ran() -> None:
    maps = attentions(examples.text_trace())
    assert [str(found.layer_id) for found in maps] == [
        "encoder layer 1 self",
        "encoder layer 2 self",
        "decoder layer 1 self",
        "decoder layer 1 cross",
        "decoder layer 2 self",
        "decoder layer 2 cross",
    ]


def test_a_map_has_a_distribution_for_every_head_and_query_in_fp32() -> None:
    cross = [m for m in attentions(examples.text_trace()) if m.layer_id.kind == "cross"]
    assert [found.whole().shape for found in cross] == [(2, 3, 4)] * 2
    for found in cross:
        assert found.whole().dtype == torch.float32
        torch.testing.assert_close(found.whole().sum(dim=-1), torch.ones(2, 3))


def test_nobody_sees_the_future() -> None:
    maps = {str(found.layer_id): found.whole() for found in attentions(examples.text_trace())}
    assert maps["encoder layer 1 self"].shape == (2, 4, 4)
    assert torch.equal(maps["decoder layer 1 self"].triu(1), torch.zeros(2, 3, 3))


def test_a_batch_is_refused() -> None:
    model, source, target = examples.transformer()
    with record() as trace:
        model(source.expand(3, -1), target.expand(3, -1))
    with pytest.raises(UsageError, match="holds 3 examples at encoder layer 1 self"):
        attentions(trace)


def test_two_passes_are_refused() -> None:
    model, source, target = examples.transformer()
    with record() as trace:
        model(source, target)
        model(source, target)
    with pytest.raises(
        UsageError,
        match=r"several passes through encoder layer 1 self.*lens\.trace\.decoding_trace\.decoded",
    ):
        attentions(trace)


def test_an_empty_trace_has_no_maps() -> None:
    assert attentions(Trace()) == []
