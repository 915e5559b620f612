"""An attention from outside the package: one record class, and every view shows it."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from manyheads.lens.attribution.gradients import weighed
from manyheads.lens.attribution.relevance import read_from, relevance
from manyheads.lens.attribution.rollout import why_not
from manyheads.lens.measures.alignment_head import layers
from manyheads.lens.measures.attention_distance import distance_figures
from manyheads.lens.measures.idle_heads import HeadStatistics
from manyheads.lens.measures.recorded_masks import mask_figures
from manyheads.lens.trace.attention_reader import Attention, attentions
from manyheads.lens.trace.decoding_trace import decoded
from manyheads.lens.trace.module_shapes import walk
from manyheads.lens.view.image_view import image_view
from manyheads.lens.view.text_view import text_view
from manyheads.nn import (
    ALL,
    AttentionRecord,
    DecodeStep,
    LayerId,
    Search,
    TokenGrid,
    Trace,
    ValueRecord,
    active,
    causal_mask,
    current_grid,
    record,
    record_candidates,
    record_values,
    start_image,
    start_text,
    step_context,
    take,
    track_conv,
)


@dataclass(frozen=True)
class DistanceRecord:
    """Attention that falls off with the distance of tokens: no queries, no keys, only a slope."""

    layer_id: LayerId
    slopes: Tensor  # (batch, head)
    tokens: tuple[int, int]  # queries and keys
    mask: Tensor | None = None
    query_grid: TokenGrid | None = None
    key_grid: TokenGrid | None = None
    partition: None = None
    values: ValueRecord | None = None
    decode_step: DecodeStep | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads = self.slopes.shape
        return batch, heads, *self.tokens

    def weights(self, rows: slice = ALL, queries: slice = ALL) -> Tensor:
        mask = take(self.mask, rows, ALL)
        return distance_weights(self.slopes[rows], self.tokens, mask)[:, :, queries]


def distance_weights(slopes: Tensor, tokens: tuple[int, int], mask: Tensor | None) -> Tensor:
    """exp(-slope * distance), each row divided by its sum."""
    far = (torch.arange(tokens[0])[:, None] - torch.arange(tokens[1])).abs()
    near = torch.exp(-slopes[:, :, None, None] * far)
    near = near if mask is None else near * mask
    return near / near.sum(dim=-1, keepdim=True)


class DistanceAttention(nn.Module):
    """Two heads with fixed slopes."""

    def __init__(self, layer_id: LayerId) -> None:
        super().__init__()
        self.layer_id = layer_id
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        slopes = torch.tensor([[0.5, 3.0]]).expand(len(x), -1)
        tokens = (x.shape[1], x.shape[1])
        v = x.unflatten(2, (2, -1)).transpose(1, 2) * self.scale
        heads = distance_weights(slopes, tokens, mask) @ v
        if (trace := active()) is not None:
            grid = current_grid()
            trace.add(
                DistanceRecord(
                    self.layer_id,
                    slopes,
                    tokens,
                    mask,
                    grid,
                    grid,
                    values=record_values(v, [heads]),
                    decode_step=trace.decode_step,
                )
            )
        return heads.transpose(1, 2).flatten(2)


def expected(tokens: int) -> Tensor:
    return distance_weights(torch.tensor([[0.5, 3.0]]), (tokens, tokens), None)[0]


def recorded_image(*, gradients: bool = False) -> tuple[Trace, Tensor]:
    """Two layers over the 2 x 3 patches of an image."""
    stack = nn.Sequential(*(DistanceAttention(LayerId("encoder", n)) for n in range(2)))
    with record(gradients=gradients) as trace:
        start_image(torch.zeros(1, 1, 4, 6))
        track_conv(2, 2, grid=(2, 3))
        out = stack(torch.rand(1, 6, 4))
    return trace, out


def test_it_satisfies_the_protocol() -> None:
    trace, _ = recorded_image()
    assert all(isinstance(each, AttentionRecord) for each in trace)
    assert trace.kept > 0  # the budget counts its tensors


def test_maps_and_image_view() -> None:
    """Maps, the grid of patches, and rollout through both layers."""
    trace, _ = recorded_image()
    for found in attentions(trace):
        torch.testing.assert_close(found.whole(), expected(6))
    view = image_view(trace, width=6, height=4, classes=[("a", 1.0)])
    assert (view.grids[0].rows, view.grids[0].columns) == (2, 3)
    torch.testing.assert_close(torch.tensor(view.maps[0].weights), expected(6), atol=6e-5, rtol=0)
    assert why_not(attentions(trace)) is None
    assert [overlay.name for overlay in view.overlays] == ["rollout"]
    (figure,) = distance_figures(attentions(trace), [])
    assert figure.group == "distance"


def test_text_view_masks_and_heads() -> None:
    """Words as labels; a causal mask as a triangle; entropy and distance of heads."""
    with record() as trace, torch.no_grad():
        start_text()
        DistanceAttention(LayerId("decoder"))(torch.rand(1, 3, 4), causal_mask(3))
    view = text_view(
        trace, source=["a"], output=["x", "y", "</s>"], probabilities=[1.0] * 3, start="<s>"
    )
    assert view.maps[0].columns == ["<s>", "x", "y"]
    (figure,) = mask_figures(trace, {"decoder self": (["x", "y", "z"], ["<s>", "x", "y"])})
    assert "6 of 9 pairs may" in figure.legend
    watch = HeadStatistics()
    watch.add(trace)
    assert len(watch.heads(nn.Identity())) == 2
    ((twins),) = watch.duplicates()
    assert twins.distance > 0.1


def test_relevance() -> None:
    """dL/dA of its weights, from the values and outputs that it keeps."""
    trace, out = recorded_image(gradients=True)
    found = weighed(trace, out[0, 0].sum())
    assert [each.attention.layer_id.layer for each in found] == [0, 1]
    shares = relevance(found, read_from(found[-1]))
    assert shares.argmax() < 3  # near the token that the score is read from
    assert float(shares.sum()) > 0


def test_shapes() -> None:
    """The walk through the model has a line for its map."""
    model = DistanceAttention(LayerId("encoder"))
    line = next(each for each in walk(model, lambda: model(torch.rand(1, 3, 4))) if each.depth)
    assert (line.kind, line.outputs) == ("attention", ((1, 2, 3, 3),))


@pytest.fixture
def searched() -> tuple[Trace, Tensor]:
    """A search with two beams over a padded source, which an own cross-attention reads."""
    sources = torch.tensor([[5, 6, 7], [8, 9, 0]])
    slopes = torch.rand(2, 2)
    search = Search(sources)
    reads = [torch.zeros(2, 2, 0), torch.tensor([[[1], [1]]] * 2), None]
    reads[2] = torch.tensor([[[1, 4], [1, 3]], [[1, 3], [1, 4]]])
    with record() as trace:
        for read in reads:
            assert read is not None
            step = DecodeStep(search, torch.arange(2), read.long())
            with step_context(step):
                if step.step:
                    mask = (sources != 0)[:, None, None]
                    where = LayerId("decoder", 0, "cross")
                    beams = DistanceRecord(where, slopes, (2, 3), mask, decode_step=step)
                    trace.add(beams)
                    record_candidates(torch.rand(2, 2, 6).log(), step)
    return trace, slopes


def test_one_output_of_a_search(searched: tuple[Trace, Tensor]) -> None:
    """The rows of its beams, step by step, without the padding of its source."""
    trace, slopes = searched
    found = decoded(trace, [4, 2], [8, 9])
    ((map_),) = attentions(found.trace)
    whole = distance_weights(slopes[1:], (2, 3), torch.tensor([True, True, False]))[0]
    # The first step is that of beam 0, which has read the start alone; then beam 1 has read 4.
    torch.testing.assert_close(map_.whole(), whole[:, [0, 1], :2])
    assert layers(found.trace)[0].shape == (1, 2, 2, 2)
    assert len(found.candidates) == 2
    assert Attention(found.trace.records[0]).heads == 2  # type: ignore[arg-type]
