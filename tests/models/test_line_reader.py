"""The line reader: columns of a few pixels, of lines of any width."""

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.models.line_reader import LineReader, LineReaderConfig
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import record

TINY = LineReaderConfig(
    vocabulary=11, widths=(4, 6, 8, 8), dim=16, layers=2, heads=2, ffn_dim=24, line_height=32
)


@pytest.mark.parametrize("width", [32, 64, 96, 1024])
def test_a_column_every_four_pixels(width: int) -> None:
    model = LineReader(TINY).eval()
    assert TINY.column_width == 4
    assert model(torch.rand(2, 1, 32, width)).shape == (2, width // 4, 11)


def test_a_batch_of_lines_is_each_line() -> None:
    torch.manual_seed(0)
    model = LineReader(TINY).eval()
    images = torch.rand(5, 1, 32, 96)
    together = model(images)
    alone = torch.cat([model(image[None]) for image in images])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


def test_what_lies_far_to_the_right_is_seen_through_attention_alone() -> None:
    """The stem's columns see 15 pixels at most on either side."""
    torch.manual_seed(0)
    model = LineReader(TINY).eval()
    images = torch.rand(1, 1, 32, 128)
    changed = images.clone()
    changed[..., 96:] = 1 - changed[..., 96:]
    near, other = model.embed(images)[0], model.embed(changed)[0]
    same = (near == other).all(dim=1)
    assert same[:20].all()
    assert not same[-4:].any()


def test_tokens_are_known_as_columns_of_the_image() -> None:
    """Recorded attention says where on the line each token lies: one row of columns."""
    model = LineReader(TINY).eval()
    with record() as trace:
        model(torch.rand(1, 1, 32, 64))
    entries = [entry for entry in trace if isinstance(entry, AttentionRecord)]
    assert len(entries) == 2
    for entry in entries:
        grid = entry.query_grid
        assert grid is not None
        assert grid.shape == (1, 16)
        assert grid.image == (32, 64)
        assert grid.columns.stride == 4
        # Strides of 2 put each centre half a pixel behind a multiple of 4.
        assert grid.columns.centres() == [4 * n + 0.5 for n in range(16)]
        assert grid.rows.edges(32) == [0.0, 32.0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"line_height": 24}, "24 pixels high"),
        ({"widths": (4, 4)}, "widths has 2 numbers"),
        ({"widths": (), "row_strides": (), "column_strides": ()}, "0 numbers"),
    ],
)
def test_impossible_stems_are_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        LineReaderConfig(**changes)  # type: ignore[arg-type]
