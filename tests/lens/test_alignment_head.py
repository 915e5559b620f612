"""The attention that says where words come from: found by its errors."""

import pytest
import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.measures.alignment_head import (
    UNMEASURED,
    AlignmentHead,
    Chosen,
    Errors,
    Reference,
    alignment_view,
    choose,
    count,
    fallback,
    layers,
    links,
    read,
    readers,
)
from manyheads.nn.attention.recurrent_attention import ScoreRecord
from manyheads.nn.recording.trace import LayerId, Trace
from tests.lens import examples

OFF = torch.tensor([[0.25, 0.25, 0.25, 0.25]] * 4)  # a head that says nothing
# Output 0 comes from source 2, 1 from 1, 2 from 0; the last row and column are the ends.
RIGHT = torch.tensor(
    [[0.1, 0.1, 0.7, 0.1], [0.1, 0.7, 0.1, 0.1], [0.4, 0.2, 0.1, 0.3], [0.1, 0.1, 0.1, 0.7]]
)
# Surely wrong: a mean with it is wrong, too.
WRONG = torch.tensor(
    [[0.9, 0.04, 0.03, 0.03], [0.9, 0.04, 0.03, 0.03], [0.04, 0.9, 0.03, 0.03], [0.25] * 4]
)
LATE = RIGHT.roll(1, dims=0)  # the same, one step later


def trace(*by_layer: list[Tensor]) -> Trace:
    """A decoder whose heads, layer by layer, have these maps; and what is no map of the source."""
    records = []
    for layer, heads in enumerate(by_layer):
        records.append(examples.record_of(LayerId("decoder", layer, "self"), torch.stack(heads)))
        records.append(examples.record_of(LayerId("decoder", layer, "cross"), torch.stack(heads)))
    return Trace([examples.record_of(LayerId("encoder", 0, "self"), OFF[None]), *records])


def test_maps_over_the_source_by_layer() -> None:
    found = layers(trace([OFF, RIGHT], [LATE, OFF]))
    assert list(found) == [0, 1]
    torch.testing.assert_close(found[0][0], torch.stack([OFF, RIGHT]))


def test_a_decoder_that_reads_token_by_token() -> None:
    """T4: its records are put together, one query each."""
    rows = RIGHT.log()[None, None].split(1, dim=2)
    found = layers(Trace([ScoreRecord(LayerId("decoder", 0, "cross"), row, None) for row in rows]))
    torch.testing.assert_close(found[0][0, 0], RIGHT)


def test_every_head_every_layer_and_all_are_asked_twice() -> None:
    """Of 2 layers of 2 heads: 2 x (4 heads + 2 means + the mean of all); the rule comes first."""
    maps = layers(trace([OFF, RIGHT], [LATE, OFF]))
    found = readers(maps)
    assert len(found) == len(set(found)) == 2 * (4 + 2 + 1)
    assert found[0] == fallback(maps) == AlignmentHead(layer=0)
    assert {reader.late for reader in found} == {False, True}
    one = layers(trace([RIGHT]))
    assert readers(one) == [
        AlignmentHead(layer=0),
        AlignmentHead(layer=0, late=True),
    ]  # of one head, no more
    assert fallback(layers(trace([OFF], [OFF], [OFF]))) == AlignmentHead(layer=1)


def test_what_a_reader_reads() -> None:
    maps = layers(trace([OFF, RIGHT], [LATE, OFF]))
    torch.testing.assert_close(read(maps, AlignmentHead(layer=0, head=1))[0], RIGHT)
    torch.testing.assert_close(read(maps, AlignmentHead(layer=0))[0], (OFF + RIGHT) / 2)
    torch.testing.assert_close(read(maps, AlignmentHead())[0], (2 * OFF + RIGHT + LATE) / 4)
    late = read(maps, AlignmentHead(layer=1, head=0, late=True))[0]
    torch.testing.assert_close(late[:3], RIGHT[:3])  # the row that reads a token is the next one
    torch.testing.assert_close(late[3], LATE[3])  # the last has none


def test_a_layer_that_is_not_there_is_refused() -> None:
    """A choice that belongs to another model is no choice."""
    maps = layers(trace([OFF, RIGHT]))
    for reader, name in (
        (AlignmentHead(layer=1), "layer 2"),
        (AlignmentHead(layer=0, head=2), "head 3"),
    ):
        with pytest.raises(UsageError, match=rf"{name}.*the decoder's layers are 1 \(2 heads\)"):
            read(maps, reader)


def test_without_attention_over_the_source_there_is_no_alignment() -> None:
    with pytest.raises(UsageError, match="no attention over the source"):
        layers(Trace([examples.record_of(LayerId("decoder", 0, "self"), OFF[None])]))


def test_errors_are_counted_by_reference() -> None:
    """A number of two tokens is right if both are; it may come from any of several words."""
    references = [
        Reference({0}, {2}),
        Reference({1, 2}, {0, 1}),
        Reference({1, 2}, {1}),
        Reference({2}, {3}),
    ]
    assert count([2, 1, 0], references) == Errors(wrong=2, of=4)
    assert Errors(1, 8).percent == 12.5


@pytest.mark.parametrize(
    ("planted", "by_layer"),
    [
        (AlignmentHead(layer=0, head=1), ([WRONG, RIGHT], [LATE, WRONG])),
        (AlignmentHead(layer=1, head=0, late=True), ([OFF, WRONG], [LATE, WRONG])),
        (AlignmentHead(layer=0), ([RIGHT, RIGHT], [OFF, OFF])),  # of equals, the one that uses more
    ],
)
def test_the_one_that_errs_least_is_chosen(
    planted: AlignmentHead, by_layer: tuple[list[Tensor], ...]
) -> None:
    maps = layers(trace(*by_layer))
    references = [Reference({row}, {column}) for row, column, _ in links(RIGHT, 3, 3)]
    errors = {
        reader: count(read(maps, reader)[0, :3, :3].argmax(dim=1).tolist(), references)
        for reader in readers(maps)
    }
    assert choose(errors) == planted
    assert errors[planted].wrong == 0


def test_links_leave_out_both_ends() -> None:
    found = links(RIGHT, 3, 3)
    assert [(row, column) for row, column, _ in found] == [(0, 2), (1, 1), (2, 0)]
    assert [share for *_, share in found] == pytest.approx([0.7, 0.7, 0.4])
    assert links(RIGHT, 3, 0) == []


def test_the_view_says_what_was_chosen_and_why() -> None:
    chosen = Chosen(
        reader=AlignmentHead(layer=1, head=0, late=True), why="it errs least", error=0.0213
    )
    found = alignment_view(trace([OFF, OFF], [LATE, OFF]), chosen, 3, 3)
    assert found.chosen == {"site": "decoder layer 2 cross", "layer": 2, "head": 1, "step": "read"}
    assert found.legend.endswith("while reading the token; the end token of the source is left out")
    assert (found.why, found.error) == ("it errs least", 0.0213)
    assert found.links == [[0, 2, 0.7], [1, 1, 0.7], [2, 0, 0.4]]
    mean = alignment_view(trace([RIGHT], [RIGHT]), Chosen(reader=AlignmentHead(), why=""), 3, 3)
    assert mean.chosen == {
        "site": "decoder cross",
        "layer": None,
        "head": None,
        "step": "written",
    }


def test_an_attention_that_was_not_measured_says_so() -> None:
    found = alignment_view(trace([RIGHT], [OFF]), None, 3, 3)
    assert found.chosen["layer"] == 1
    assert (found.why, found.error) == (UNMEASURED, None)
