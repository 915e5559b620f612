"""The view of an image: grids, boxes, windows, readers, rollout, and what is left out."""

import json
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.attribution.rollout import rollout
from manyheads.lens.trace.attention_reader import Attention, attentions
from manyheads.lens.trace.grids import Crop, grid_groups, grid_view, merge, window_boxes
from manyheads.lens.view.image_view import image_view
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.attention.window import Windows
from manyheads.nn.recording.token_grid import Axis, TokenGrid
from manyheads.nn.recording.trace import LayerId, Trace
from tests.lens import examples
from tests.small import IMAGES

WHOLE = Crop(0, 0, 40, 40)


def patches(rows: int, columns: int, extra: tuple[str, ...] = ()) -> TokenGrid:
    """Patches of 10 x 10 pixels."""
    return TokenGrid(
        (10 * rows, 10 * columns),
        Axis(rows, stride=10, receptive_field=10),
        Axis(columns, stride=10, receptive_field=10),
        extra,
    )


def standing(weights: Tensor, at: TokenGrid, layer: int = 0) -> SoftmaxRecord:
    """A self-attention with these weights between tokens that stand somewhere."""
    return replace(
        examples.record_of(LayerId("encoder", layer, "self"), weights), query_grid=at, key_grid=at
    )


def test_an_image_view_survives_json() -> None:
    view = examples.small_image_view("class").to_json()
    assert view["kind"] == "image"
    assert view["classes"][0] == {
        "label": "three",
        "probability": 0.75,
        "explained": False,
    }
    (grid,) = view["grids"]
    assert (grid["rows"], grid["columns"], grid["extra"]) == (2, 3, ["class token"])
    assert grid["boxes"][:4] == [[0, 0, 2, 2], [0, 2, 2, 2], [0, 4, 2, 2], [2, 0, 2, 2]]
    assert grid["field"] == [2, 2]
    assert view["maps"][0]["row_grid"] == view["maps"][0]["column_grid"] == 0
    assert json.loads(json.dumps(view)) == view


def test_the_class_token_stands_before_the_patches() -> None:
    found = examples.small_image_view("class").maps[0]
    assert found.rows[:3] == ["class token", "patch 1,1", "patch 1,2"]
    assert len(found.rows) == len(found.columns) == 7
    assert "from each patch and the class token to all of them" in found.legend
    assert examples.small_image_view("mean").maps[0].rows[-1] == "patch 2,3"


def test_where_the_class_token_looks() -> None:
    view = examples.small_image_view("class")
    weights = [[0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], *[[0.0] * 7] * 6]
    assert view.received(view.maps[0], weights) == [[0.1, 0.1, 0.1], [0.1, 0.1, 0.1]]


def test_two_extra_tokens_are_read_alike() -> None:
    """V15: a DeiT's class and distillation tokens; the mean of what both look at."""
    view = examples.small_image_view("distilled")
    assert view.maps[0].columns[:2] == ["class token", "distillation token"]
    weights = [[0.5, 0.1, 0.4, 0, 0, 0, 0, 0], [0.3, 0.5, 0, 0.2, 0, 0, 0, 0], *[[0.125] * 8] * 6]
    (first, _) = view.received(view.maps[0], weights)
    assert first == pytest.approx([0.2, 0.1, 0.0])


def test_without_extra_tokens_all_are_read() -> None:
    view = examples.small_image_view("mean")
    weights = [[1.0, 0, 0, 0, 0, 0]] * 3 + [[0, 0, 0, 0, 0, 1.0]] * 3
    assert view.received(view.maps[0], weights) == [[0.5, 0, 0], [0, 0, 0.5]]


def test_a_pool_asks_with_a_query_of_its_own() -> None:
    """V2: sequence pooling; rollout begins with what the pool reads."""
    view = examples.small_image_view("sequence")
    found = view.maps[-1]
    assert (found.kind, found.rows, found.row_grid) == ("pool sequence", ["learned query"], None)
    assert view.received(found, found.mean) == [found.mean[0][:3], found.mean[0][3:]]
    (rollout,) = view.overlays
    assert "from the pool's learned query" in rollout.legend


def test_boxes_lie_in_the_image_that_was_cropped() -> None:
    """Pixels of the image, not of the model's input: cut out 80 x 40 at (10, 5), 4 to 1."""
    grid = grid_view(patches(1, 2), Crop(left=10, top=5, right=90, bottom=45))
    assert grid.boxes == [[5, 10, 40, 40], [5, 50, 40, 40]]
    assert grid.field == [40, 40]


def test_a_receptive_field_has_a_height_and_a_width() -> None:
    """3 x 5 pixels of the model's input; 2 high and 3 wide are each of them in the image."""
    at = TokenGrid((10, 20), Axis(5, stride=2, receptive_field=3), Axis(5, 0, 4, 5))
    assert grid_view(at, Crop(left=0, top=0, right=60, bottom=20)).field == [6, 15]


def test_merging_by_hand() -> None:
    """3 x 3 tokens in squares of 2: four cells, the last ones smaller; extra tokens stay."""
    at = patches(3, 3, ("class token",))
    assert merge(at, limit=10) == 1
    assert merge(at, limit=9) == 2
    grid = grid_view(at, Crop(0, 0, 30, 30), merged=2)
    assert grid.boxes == [[0, 0, 20, 20], [0, 20, 20, 10], [20, 0, 10, 20], [20, 20, 10, 10]]
    assert grid_groups(at, 2).index.tolist() == [0, 1, 1, 2, 1, 1, 2, 3, 3, 4]
    assert grid.labels[:2] == ["class token", "patches 1,1"]


@pytest.mark.parametrize(
    ("name", "budget"),
    [("deit: deit-b", 150), ("swin-t", 1000), ("cvt-13", 60), ("cct: cct-7/3x1", 150)],
)
def test_a_view_within_a_budget_is_the_whole_one_merged(name: str, budget: int) -> None:
    """Rows are means, columns sums, for windows too, whose whole map is never formed; said."""
    trace = examples.recorded(IMAGES[name])
    view = image_view(trace, width=9, height=9, classes=[], budget=budget)
    assert sum(len(m.weights) * len(m.rows) * len(m.columns) for m in view.maps) <= budget
    assert any("tokens are shown as" in note for note in view.notes)
    for found, attention, whole in zip(
        view.maps, attentions(trace), (each.whole() for each in attentions(trace)), strict=True
    ):
        assert attention.key_grid is not None
        columns = grid_groups(attention.key_grid, view.grids[found.column_grid or 0].merged)
        by_hand = torch.zeros(*whole.shape[:2], columns.count)
        for key, group in enumerate(columns.index.tolist()):
            by_hand[:, :, group] += whole[:, :, key]
        if found.row_grid is not None:
            assert attention.query_grid is not None
            rows = grid_groups(attention.query_grid, view.grids[found.row_grid].merged)
            by_hand = torch.stack(
                [by_hand[:, rows.index == group].mean(dim=1) for group in range(rows.count)], dim=1
            )
        torch.testing.assert_close(torch.tensor(found.weights), by_hand, atol=6e-5, rtol=0)


def test_windows_of_a_shifted_grid() -> None:
    """V16, figure 4: 4 x 4 tokens, windows of 2, shifted by 1; the last holds four corners."""
    windows = Windows(grid=(4, 4), size=(2, 2), shift=(1, 1))
    found = window_boxes(windows, patches(4, 4), WHOLE)
    assert found[0] == [[[10, 10, 20, 20]]]
    assert found[1] == [[[10, 30, 20, 10]], [[10, 0, 20, 10]]]  # hidden from each other
    assert found[3] == [
        [[30, 30, 10, 10]],
        [[30, 0, 10, 10]],
        [[0, 30, 10, 10]],
        [[0, 0, 10, 10]],
    ]


def test_what_goes_to_padding_is_said() -> None:
    """Rows sum to less than 1 there, and the legend does not say that they sum to 1."""
    view = image_view(examples.recorded(IMAGES["swin as timm pads"]), width=9, height=9, classes=[])
    partial = [found for found in view.maps if min(sum(row) for row in found.mean) < 0.99]
    assert partial
    for found in partial:
        assert found.legend.endswith("rows sum to at most 1, the rest goes to padding")


@pytest.mark.parametrize("name", ["swin-t", "swin as timm pads"])
def test_boxes_of_windows_are_what_may_attend(name: str) -> None:
    """Two tokens attend to each other exactly if boxes of one group hold both of them."""
    trace = examples.recorded(IMAGES[name])
    view = image_view(trace, width=100, height=100, classes=[])
    for found, attention in zip(view.maps, attentions(trace), strict=True):
        whole = attention.whole()
        assert found.windows is not None
        assert found.row_grid is not None
        boxes = view.grids[found.row_grid].boxes
        group = [_group(found.windows, box) for box in boxes]
        mutual = torch.tensor([[a == b for a in group] for b in group])
        if "timm" not in name:  # whose padded windows let neighbours of the padding meet
            assert torch.equal(whole[0] > 0, mutual)
        assert (whole[0] > 0)[mutual].all()


def _group(windows: list[list[list[list[float]]]], box: list[float]) -> tuple[int, int]:
    row, column = box[0] + box[2] / 2, box[1] + box[3] / 2
    (found,) = {
        (number, place)
        for number, window in enumerate(windows)
        for place, group in enumerate(window)
        for top, left, high, wide in group
        if top < row < top + high and left < column < left + wide
    }
    return found


def test_rollout_by_hand() -> None:
    """Abnar & Zuidema 2020: (A + I) / 2, multiplied from the top down."""
    first = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]).clamp_min(1e-30)
    second = torch.tensor([[[0.2, 0.8], [1.0, 0.0]]]).clamp_min(1e-30)
    layers = [Attention(standing(w, patches(1, 2), n)) for n, w in enumerate((first, second))]
    product = (second[0] + torch.eye(2)) / 2 @ ((first[0] + torch.eye(2)) / 2)
    for token in range(2):
        torch.testing.assert_close(rollout(layers, torch.eye(2)[token]), product[token])
    view = image_view(Trace([e.record for e in layers]), width=20, height=10, classes=[])
    (overlay,) = view.overlays
    assert (overlay.name, overlay.target, overlay.signed) == ("rollout", None, False)
    assert overlay.weights == pytest.approx(product.mean(dim=0).tolist(), abs=1e-4)


def test_a_trace_without_an_image_is_refused() -> None:
    with pytest.raises(UsageError, match="contains no attention"):
        image_view(Trace(), width=2, height=2, classes=[])
    with pytest.raises(
        UsageError, match="no image positions for the tokens of encoder layer 1 self"
    ):
        image_view(examples.text_trace(), width=2, height=2, classes=[])
    other = standing(torch.full((1, 2, 2), 0.5), patches(1, 3))
    with pytest.raises(UsageError, match="2 queries and 2 keys, but the image has 3 and 3 tokens"):
        image_view(Trace([other]), width=2, height=2, classes=[])
