import json

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.lens.view.text_view import MapView, clearest, text_view
from manyheads.nn.recording.trace import LayerId, Trace
from tests.lens import examples

CROSS = "attention from the step that predicts each output word to the source; every row sums to 1"


def by_site(maps: list[MapView]) -> dict[str, MapView]:
    return {found.site: found for found in maps}


def test_a_text_view_survives_json() -> None:
    view = examples.small_text_view().to_json()
    assert view["kind"] == "text"
    assert list(view) == [
        "schema",
        "kind",
        "source",
        "output",
        "probabilities",
        "maps",
        "gates",
        "notes",
        "figures",
        "overlays",
        "alignment",
        "steps",
    ]
    assert json.loads(json.dumps(view)) == view


def test_legends_say_what_is_drawn() -> None:
    found = by_site(examples.small_text_view().maps)["decoder layer 2 cross"]
    assert found.legend == f"decoder layer 2, mean of 2 heads, {CROSS}"
    assert found.head_legends == [f"decoder layer 2, head {head}, {CROSS}" for head in (1, 2)]


def test_rows_are_what_a_step_produces_and_columns_what_it_has_read() -> None:
    found = by_site(examples.small_text_view().maps)
    cross, own = found["decoder layer 1 cross"], found["decoder layer 1 self"]
    assert (cross.rows, cross.columns) == (["x", "y", "</s>"], ["a", "b", "c", "</s>"])
    assert (own.rows, own.columns) == (["x", "y", "</s>"], ["<s>", "x", "y"])
    encoder = found["encoder layer 1 self"]
    assert encoder.rows == encoder.columns == ["a", "b", "c", "</s>"]


def test_weights_are_rounded_and_rows_still_sum_to_1() -> None:
    for found in [*examples.small_text_view().maps, *examples.small_image_view("mean").maps]:
        for matrix in (found.mean, *found.weights):
            for row in matrix:
                assert sum(row) == pytest.approx(1, abs=5e-5 * len(row))
                assert all(weight == round(weight, 4) for weight in row)


def test_a_row_with_nothing_to_attend_to_is_not_said_to_sum_to_1() -> None:
    layer_id = LayerId("encoder", 0, "self")
    record = examples.record_of(layer_id, torch.full((1, 2, 2), 0.5))
    blind = type(record)(
        layer_id, record.q, record.k, torch.tensor([[True, True], [False, False]]), None
    )
    view = text_view(Trace([blind]), source=["a", "b"], output=[], probabilities=[])
    assert view.maps[0].mean == [[0.5, 0.5], [0.0, 0.0]]
    assert view.maps[0].legend.endswith("rows sum to 1, or to 0 with nothing to attend to")


def test_labels_that_do_not_fit_the_trace_are_refused() -> None:
    with pytest.raises(UsageError, match=r"encoder layer 1 self has 4 queries and 4 keys, but 2"):
        text_view(examples.text_trace(), source=["a", "b"], output=["x"], probabilities=[1.0])


def test_a_kind_without_words_is_refused() -> None:
    trace = Trace([examples.record_of(LayerId("memory", 0, "self"), torch.ones(1, 1, 1))])
    with pytest.raises(UsageError, match="kind 'memory self'"):
        text_view(trace, source=["a"], output=[], probabilities=[])


def test_spans_say_which_characters_are_meant() -> None:
    """Rows of the decoder are what it wrote, columns what it had read: one token less."""
    view = text_view(
        examples.text_trace(),
        source=["▁ab", "c", "d", "</s>"],
        output=["x", "y", "</s>"],
        probabilities=[0.5, 0.25, 1.0],
        source_spans=[[0, 2], [2, 3], [3, 4], None],
        output_spans=[[0, 1], [1, 2], None],
    )
    found = by_site(view.maps)
    cross, own = found["decoder layer 1 cross"], found["decoder layer 1 self"]
    assert (cross.row_spans, cross.column_spans) == (
        [[0, 1], [1, 2], None],
        [[0, 2], [2, 3], [3, 4], None],
    )
    assert own.column_spans == [None, [0, 1], [1, 2]]
    assert by_site(examples.small_text_view().maps)["encoder layer 1 self"].row_spans is None


def test_a_long_text_is_shown_in_groups() -> None:
    """A budget of 40 weights: of 4 tokens 2 groups, named by their ends; rows still sum to 1."""
    whole = examples.small_text_view()
    view = text_view(
        examples.text_trace(),
        source=["a", "b", "c", "</s>"],
        output=["x", "y", "</s>"],
        probabilities=[0.5, 0.25, 1.0],
        source_spans=[[0, 1], [2, 3], [4, 5], None],
        budget=50,
    )
    cross, expected = (by_site(each.maps)["decoder layer 2 cross"] for each in (view, whole))
    assert (cross.rows, cross.columns) == (["x…y", "</s>"], ["a…b", "c…</s>"])
    assert cross.column_spans == [[0, 3], [4, 5]]
    rows = torch.tensor(expected.mean)
    by_hand = torch.stack([rows[:2].mean(0), rows[2]]).view(2, 2, 2).sum(-1)
    torch.testing.assert_close(torch.tensor(cross.mean), by_hand, atol=2e-4, rtol=0)
    assert view.notes == [
        f"The {name} has {count} tokens: maps show groups of 2; rows are their mean, columns "
        "their sum."
        for name, count in (("source", 4), ("output", 3))
    ]
    assert len(view.source) == 4  # the text itself stays as it is


def test_a_short_output_of_a_long_source_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.lens.view.text_view.TOKENS", 3)
    view = text_view(
        examples.text_trace(),
        source=["a", "b", "c", "</s>"],
        output=["x", "y", "</s>"],
        probabilities=[0.5, 0.25, 1.0],
    )
    cross = by_site(view.maps)["decoder layer 2 cross"]
    assert (cross.rows, cross.columns) == (["x", "y", "</s>"], ["a…b", "c…</s>"])
    assert [note.split(":")[0] for note in view.notes] == ["The source has 4 tokens"]


def test_the_clearest_layer_tells_words_apart() -> None:
    everywhere = examples.map_view([[0.5, 0.5], [0.5, 0.5]], layer=1)
    one_place = examples.map_view([[1.0, 0.0], [1.0, 0.0]], layer=2)  # sharp, and says nothing
    apart = examples.map_view([[0.9, 0.1], [0.1, 0.9]], layer=3)
    assert clearest([everywhere, one_place, apart]) is apart
    assert clearest(examples.date_view().maps).layer == 3
