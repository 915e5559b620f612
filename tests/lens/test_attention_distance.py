"""How far heads look, worked out by hand."""

import pytest
import torch

from manyheads.lens.measures.attention_distance import (
    attention_distance,
    centres,
    distance_figures,
    distances_by_layer,
    head_distances,
)
from manyheads.lens.panels import Lines
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.states import record_states
from manyheads.models.presets import build
from manyheads.nn.recording.token_grid import Axis, TokenGrid
from manyheads.nn.recording.trace import LayerId, Trace, record
from tests.lens.examples import record_of, recorded, whole_maps
from tests.small import CONVOLUTIONAL, HYBRIDS, STAGED, VITS, inputs, randomise

SQUARE = centres(TokenGrid((8, 8), Axis(2, 0, 4, 4), Axis(2, 0, 4, 4)))


def test_centres() -> None:
    """Patches of 4; and what a convolution of 7 with stride 4 and 2 zeros in front makes."""
    assert SQUARE.tolist() == [[2, 2], [2, 6], [6, 2], [6, 6]]
    through = Axis(16).through(7, 4, 2, count=4)
    assert centres(TokenGrid((16, 1), through, Axis(1)))[:2].tolist() == [[1.5, 0.5], [5.5, 0.5]]


def test_attention_distance() -> None:
    """A head that looks at itself, one that looks evenly; the class token's column is left out."""
    own = torch.eye(4)
    even = torch.full((4, 4), 0.25)
    weights = torch.zeros(1, 2, 5, 5)
    weights[0, 0, 1:, 1:], weights[0, 1, 1:, 1:] = 0.5 * own, 0.5 * even
    weights[..., 0] = 0.5  # half of all attention goes to the class token
    found = attention_distance(weights, SQUARE, SQUARE)
    torch.testing.assert_close(found, torch.tensor([0.0, (8 + 32**0.5) / 4], dtype=torch.float64))


def test_tokens_of_a_text() -> None:
    """Three tokens that all look at the first: 0, 1 and 2 tokens back."""
    weights = torch.tensor([[[1.0, 0, 0], [1, 0, 0], [1, 0, 0]]]).clamp_min(1e-9)
    (found,) = attentions(Trace([record_of(LayerId("encoder"), weights)]))
    assert head_distances(found).tolist() == pytest.approx([1.0], abs=1e-6)


@pytest.mark.parametrize("name", ["vit-b", "swin-t", "cvt-13", "coatnet-0"])
def test_pieces_and_the_whole_agree(name: str) -> None:
    """Windows, fewer keys, class tokens: as the formula over the whole map, in pixels."""
    config = {**VITS, **STAGED}[name]
    for found in attentions(recorded(config)):
        if found.layer_id.stack == "pool":
            continue
        assert found.query_grid is not None
        assert found.key_grid is not None
        whole = whole_maps(found.record)
        where = centres(found.query_grid), centres(found.key_grid)
        torch.testing.assert_close(head_distances(found), attention_distance(whole, *where))


def test_many_images() -> None:
    """The mean over images of what each of them has."""
    config = VITS["vit-b"]
    model, images = randomise(build(config)).eval(), inputs(config)[0]
    alone = torch.tensor([distances_by_layer(model, each[None]) for each in images])
    together = torch.tensor(distances_by_layer(model, images))
    torch.testing.assert_close(alone.mean(dim=0), together)
    assert together.shape == (config.layers, config.heads)


def curves(name: str) -> dict[str, tuple[list[float], list[float | None]]]:
    config = {**VITS, **STAGED, **HYBRIDS, **CONVOLUTIONAL}[name]
    model = randomise(build(config)).eval()
    with record() as trace, record_states(model) as states, torch.no_grad():
        model(inputs(config)[0][:1])
    (figure,) = distance_figures(attentions(trace), states.layers)
    assert isinstance(figure.panel, Lines)
    return {curve.name: (curve.x, curve.y) for curve in figure.panel.curves}


def test_a_pure_vit_beside_plain_convolutions() -> None:
    """V11: 3 x 3 convolutions see 3 and 5 pixels, heads as far as they like."""
    found = curves("vit-b")
    _, fields = found["3 x 3 convolutions: receptive field"]
    assert fields == [3, 5]
    layers, _ = found["farthest head"]
    assert layers == [1, 2]
    assert "its convolutions: receptive field" not in found


def test_a_resnet_has_its_own_receptive_field() -> None:
    """By hand: stem 7 with stride 2 and pool 3 with stride 2 see 11, then + 8 twice a block."""
    x, y = curves("resnet-18")["its convolutions: receptive field"]
    # The third block's first convolution reads every 4th pixel, its second every 8th.
    assert x == [1, 2, 3]
    assert y == [11 + 16, 11 + 32, 11 + 32 + 8 + 16]
    assert curves("resnet-18").keys() == {"its convolutions: receptive field"}


def test_vgg_and_a_hybrid() -> None:
    """VGG: 3, then a pool of 2 and two more; a hybrid has both kinds of layers in a row."""
    _, fields = curves("vgg-16")["its convolutions: receptive field"]
    assert fields == [3, 8, 12]
    found = curves(next(name for name, config in HYBRIDS.items() if config.depths))
    blocks, heads = (
        found[each][0] for each in ("its convolutions: receptive field", "farthest head")
    )
    assert heads == [len(blocks) + 1, len(blocks) + 2]
