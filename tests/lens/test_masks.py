"""Masks as recorded: by hand, and of real models."""

import torch

from manyheads.lens.measures.recorded_masks import MOST, mask_figures, window_mask_figures
from manyheads.lens.panels import Heat
from manyheads.nn.attention.window import Windows
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.recording.trace import LayerId, Trace
from tests.lens.examples import record_of, recorded, text_trace
from tests.small import ALL


def test_the_decoder_sees_no_future() -> None:
    """T13: a triangle, once for all layers; source masks hide nothing, so they are not drawn."""
    (figure,) = mask_figures(
        text_trace(),
        {
            "decoder self": (["x", "y", "</s>"], ["<s>", "x", "y"]),
            "encoder self": (["a"] * 4, ["a"] * 4),
        },
    )
    assert isinstance(figure.panel, Heat)
    assert figure.panel.values == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert (figure.panel.rows, figure.panel.columns) == (["x", "y", "</s>"], ["<s>", "x", "y"])
    assert "6 of 9 pairs may" in figure.legend


def test_a_long_text_is_cut() -> None:
    long = MOST + 10
    record = record_of(LayerId("decoder"), torch.full((1, long, long), 1 / long))
    masked = type(record)(record.layer_id, record.q, record.k, causal_mask(long), None)
    names = ["a"] * long
    (figure,) = mask_figures(Trace([masked]), {"decoder self": (names, names)})
    assert isinstance(figure.panel, Heat)
    assert len(figure.panel.values) == len(figure.panel.rows) == MOST
    assert f"the first {MOST} tokens" in figure.legend


def test_a_shifted_window_holds_strangers() -> None:
    """The last window of a shifted grid; the mask is what the model used, named by patches."""
    trace = recorded(ALL["swin-t"])
    (figure,) = window_mask_figures(trace)
    assert isinstance(figure.panel, Heat)
    values = torch.tensor(figure.panel.values)
    assert values.shape == (16, 16)
    assert torch.equal(values, values.T) or "padding" in figure.panel.rows
    assert 0 < values.sum() < values.numel()
    assert not window_mask_figures(recorded(ALL["vit-b"]))


def test_parts_from_opposite_sides_by_hand() -> None:
    """A 4 x 4 grid in windows of 2, shifted by 1: in the last window no two may meet."""
    windows = Windows(grid=(4, 4), size=(2, 2), shift=(1, 1))
    mask = windows.mask(1, torch.device("cpu"))
    assert mask is not None
    assert mask[3, 0].tolist() == torch.eye(4, dtype=torch.bool).tolist()
