"""Image size chosen at load: what is learned for places and distances is interpolated."""

from dataclasses import replace

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.models.presets import build
from manyheads.models.resize import resize
from manyheads.nn.layers.positions import resize_grid
from tests.small import IMAGES, VITS, Images, randomise

every = pytest.mark.parametrize("config", IMAGES.values(), ids=IMAGES)


@every
def test_the_same_size_is_the_same_model(config: Images) -> None:
    state = randomise(build(config)).state_dict()
    same, again = resize(config, state, (config.height, config.width))
    assert same == config
    assert again.keys() == state.keys()
    assert all(torch.equal(again[name], state[name]) for name in state)


@every
@pytest.mark.parametrize(("height", "width"), [(12, 8), (6, 20)])
def test_another_size_loads_and_runs(config: Images, height: int, width: int) -> None:
    """V9: the state fits a model that is built for that size, and leaves the old one alone."""
    state = randomise(build(config)).state_dict()
    before = {name: tensor.clone() for name, tensor in state.items()}
    resized, fitted = resize(config, state, (height, width))
    model = build(resized).eval()
    model.load_state_dict(fitted)
    assert model(torch.randn(2, 3, height, width)).isfinite().all()
    assert all(torch.equal(before[name], state[name]) for name in state)


@pytest.mark.parametrize(
    "name",
    ["vit: vit-b", "vit: relative positions", "deit: deit-s", "cct: cct-7/3x1", "coatnet-0"],
)
def test_resizing_at_load_is_resizing_at_use(name: str) -> None:
    """A model that is given another size than its own interpolates in the same way."""
    config = IMAGES[name]
    model = randomise(build(config)).eval()
    resized, fitted = resize(config, model.state_dict(), (24, 40))
    other = build(resized).eval()
    other.load_state_dict(fitted)
    images = torch.randn(2, 3, 24, 40)
    torch.testing.assert_close(other(images), model(images))


def test_extra_tokens_keep_their_positions() -> None:
    """V9: only places on the grid are interpolated."""
    config = IMAGES["deit: deit-s"]
    table = torch.randn(2 + 6, 8)
    _, fitted = resize(config, {"positions.table": table}, (8, 12))
    assert fitted["positions.table"].shape == (2 + 24, 8)
    assert torch.equal(fitted["positions.table"][:2], table[:2])
    assert torch.equal(fitted["positions.table"], resize_grid(table, (2, 3), (4, 6), 2))


def test_swin_keeps_its_windows_where_they_fit() -> None:
    """Windows of 4 x 4 stay for a larger image; for a smaller one they shrink, and their tables."""
    config = replace(IMAGES["swin-t"], height=16, width=16)
    state = randomise(build(config)).state_dict()
    _, larger = resize(config, state, (64, 32))
    name = "stages.0.blocks.0.attention.bias.table"
    assert torch.equal(larger[name], state[name])
    resized, smaller = resize(config, state, (6, 16))
    assert resized.windows == [(3, 4), (2, 4)]  # type: ignore[union-attr]
    assert smaller[name].shape == (5 * 7, 2)


def test_a_rest_is_refused() -> None:
    with pytest.raises(UsageError, match="5 x 6 pixels"):
        resize(VITS["vit-b"], {}, (5, 6))
