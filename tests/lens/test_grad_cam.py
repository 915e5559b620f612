"""Grad-CAM by hand; against captum in test_captum.py."""

import torch

from manyheads.lens.attribution.grad_cam import grad_cam, last_features
from manyheads.models.presets import PRESETS, build
from manyheads.nn.recording.features import FeatureRecord
from manyheads.nn.recording.token_grid import Axis, TokenGrid
from manyheads.nn.recording.trace import LayerId, record
from tests.small import ALL, inputs, randomise


def test_two_channels_by_hand() -> None:
    """Channels [[1, 2]] and [[3, 1]], score 2 a1 + 4 a2 - 6 b1: means 3 and -3; ReLU of the sum."""
    x = torch.tensor([[[[1.0, 2.0]], [[3.0, 1.0]]]], requires_grad=True)
    score = 2 * x[0, 0, 0, 0] + 4 * x[0, 0, 0, 1] - 6 * x[0, 1, 0, 0]
    grid = TokenGrid(
        (2, 4), Axis(1, stride=2, receptive_field=2), Axis(2, stride=2, receptive_field=2)
    )
    found = grad_cam(FeatureRecord(LayerId("features", 0, "map"), x, grid), score)
    assert found.tolist() == [[0.0, 3.0]]  # 3 * 1 - 3 * 3 < 0, 3 * 2 - 3 * 1


def test_extra_tokens_take_no_part() -> None:
    """The same numbers as tokens, behind a class token that has gradients of its own."""
    x = torch.tensor([[[9.0, 9.0], [1.0, 3.0], [2.0, 1.0]]], requires_grad=True)
    score = 2 * x[0, 1, 0] + 4 * x[0, 2, 0] - 6 * x[0, 1, 1] + 50 * x[0, 0].sum()
    grid = TokenGrid(
        (2, 4),
        Axis(1, stride=2, receptive_field=2),
        Axis(2, stride=2, receptive_field=2),
        ("class token",),
    )
    found = grad_cam(FeatureRecord(LayerId("features", 0, "tokens"), x, grid), score)
    assert found.tolist() == [[0.0, 3.0]]


def test_where_features_stand() -> None:
    """V13: the grid of the last map follows from the convolutions; of a hybrid both are shown."""

    def grids(name: str) -> dict[str, tuple[int, int]]:
        model = randomise(build(ALL[name])).eval()
        with record(gradients=True) as trace:
            model(*inputs(ALL[name]))
        for kept in last_features(trace):
            rows, columns = kept.grid.shape
            assert kept.to_map(kept.x).shape[2:] == (rows, columns)
        return {kept.layer_id.kind: kept.grid.shape for kept in last_features(trace)}

    assert grids("resnet-18") == {"map": (2, 3)}  # 16 x 24 by 8
    assert grids("resnet-20") == {"map": (8, 12)}  # no pool in the stem
    assert grids("bit-50x1") == {"map": (2, 3)}
    assert grids("vgg-16") == {"map": (4, 6)}  # before the last halving
    assert grids("mlp") == {}
    for name in PRESETS:
        if name.startswith(("hybrid", "cct", "coatnet")):
            assert list(grids(name)) == ["tokens", "map"]
