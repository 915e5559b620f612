"""Windows: cutting and joining by hand, and the block mask they amount to."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.nn.attention.attention import MultiHeadAttention, attend
from manyheads.nn.attention.relative import RelativeBias
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.attention.window import Edges, WindowedAttention, Windows
from manyheads.nn.recording.trace import record
from tests.lens.examples import whole_maps


def test_cutting_by_hand() -> None:
    """V16: 4 x 4 tokens in windows of 2 x 2; a window is a row of the batch."""
    windows = Windows(grid=(4, 4), size=(2, 2))
    assert windows.token_index().tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]
    assert windows.mask(1, torch.device("cpu")) is None


def test_shifting_by_hand() -> None:
    """V16, figure 4: after a shift by one, the last window holds four corners that never met."""
    windows = Windows(grid=(4, 4), size=(2, 2), shift=(1, 1))
    assert windows.token_index().tolist() == [
        [5, 6, 9, 10],
        [7, 4, 11, 8],
        [13, 14, 1, 2],
        [15, 12, 3, 0],
    ]
    mask = windows.mask(2, torch.device("cpu"))
    assert mask is not None
    assert mask.shape == (8, 1, 4, 4)  # two images
    assert mask[0].all()  # all neighbours
    right = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert mask[1, 0].int().tolist() == right
    assert torch.equal(mask[3, 0], torch.eye(4, dtype=torch.bool))
    assert torch.equal(mask[:4], mask[4:])


def test_padding_by_hand() -> None:
    """A rest is padded below and on the right, and nobody looks there."""
    windows = Windows(grid=(1, 3), size=(2, 2))
    assert windows.token_index().tolist() == [[0, 1, -1, -1], [2, -1, -1, -1]]
    mask = windows.mask(1, torch.device("cpu"))
    assert mask is not None
    assert mask[1, 0].int().tolist() == [[1, 0, 0, 0]] * 4
    seen = Windows(grid=(1, 3), size=(2, 2), padding_seen=True)
    assert seen.mask(1, torch.device("cpu")) is None


sides = st.integers(1, 7)


@settings(deadline=None, max_examples=40)
@given(rows=sides, columns=sides, high=st.integers(1, 4), wide=st.integers(1, 4), data=st.data())
def test_joining_undoes_cutting(
    rows: int, columns: int, high: int, wide: int, data: st.DataObject
) -> None:
    """For every grid, window and shift, also where windows do not fit."""
    windows = Windows(
        grid=(rows, columns),
        size=(high, wide),
        shift=(data.draw(st.integers(0, high - 1)), data.draw(st.integers(0, wide - 1))),
        shift_first=data.draw(st.booleans()),
    )
    x = torch.randn(2, rows * columns, 3)
    assert torch.equal(windows.join(windows.cut(x)), x)


@settings(deadline=None, max_examples=30)
@given(rows=sides, columns=sides, shifted=st.booleans())
def test_windows_are_full_attention_under_a_block_mask(
    rows: int, columns: int, shifted: bool
) -> None:
    """Design: windows are no other attention. Who shares a window, and was a neighbour, attends."""
    torch.manual_seed(0)
    size = (3, 2)
    shift = Edges().shift(size, (rows, columns)) if shifted else (0, 0)
    windows = Windows(grid=(rows, columns), size=size, shift=shift)
    tokens = rows * columns
    q, k, v = torch.randn(3, 2, tokens, 4).unbind(0)
    queries, keys, values = (windows.cut(x).unsqueeze(1) for x in (q, k, v))
    answer = windows.join(attend(queries, keys, values, windows.mask(2, q.device)).squeeze(1))

    def tile(index: int, length: int, side: int, by: int) -> tuple[int, bool]:
        moved = (index - by) % (-(-length // side) * side)
        return moved // side, moved >= -(-length // side) * side - by  # which, and brought round

    def home(token: int) -> tuple[tuple[int, bool], tuple[int, bool]]:
        row, column = divmod(token, columns)
        return tile(row, rows, size[0], shift[0]), tile(column, columns, size[1], shift[1])

    block = torch.tensor([[home(a) == home(b) for b in range(tokens)] for a in range(tokens)])
    full = attend(q[:, None], k[:, None], v[:, None], block).squeeze(1)
    torch.testing.assert_close(answer, full)


@pytest.mark.parametrize("shifted", [False, True])
def test_a_record_tells_which_tokens_are_meant(shifted: bool) -> None:
    """The maps of all windows, laid over the grid, are a distribution for every token."""
    torch.manual_seed(0)
    attention = WindowedAttention(MultiHeadAttention(8, 2), (2, 3), shifted=shifted)
    x, grid = torch.randn(2, 4 * 5, 8), (4, 5)
    plain = attention(x, grid)
    with record() as trace:
        assert torch.equal(attention(x, grid), plain)
    (entry,) = trace
    assert isinstance(entry, SoftmaxRecord)
    assert entry.partition == attention.windows(grid)
    assert entry.weights().shape == (2 * 4, 2, 6, 6)
    whole = whole_maps(entry)
    assert whole.shape == (2, 2, 20, 20)
    torch.testing.assert_close(whole.sum(-1), torch.ones(2, 2, 20))
    _, _, v = attention.attention.qkv(x).chunk(3, dim=-1)
    values = v.unflatten(-1, (2, 4)).transpose(1, 2)
    again = attention.attention.out((whole @ values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(again, plain)


def test_padding_never_changes_an_answer() -> None:
    """A grid that windows do not fill: what stands in the padding has no influence."""
    torch.manual_seed(0)
    attention = WindowedAttention(MultiHeadAttention(4, 1), (4, 4), shifted=False)
    x = torch.randn(1, 6, 4)
    bias = attention.bias((4, 4))
    small = RelativeBias((2, 3), 1)
    keep = [0, 1, 2, 4, 5, 6]  # the places of 2 x 3 tokens in a window of 4 x 4
    expected = attention.attention(x, bias=bias[:, :, keep][:, :, :, keep])
    torch.testing.assert_close(attention(x, (2, 3)), expected)
    assert small((2, 3)).shape == (1, 1, 6, 6)


def test_when_windows_shift() -> None:
    """Not along an axis that one window covers; for Hugging Face, then not at all."""
    assert Edges().shift((4, 4), (8, 8)) == (2, 2)
    assert Edges().shift((4, 4), (4, 8)) == (0, 2)
    assert Edges().shift((7, 7), (14, 14)) == (
        3,
        3,
    )  # floor(M / 2), section 3.2: Swin's own windows
    assert Edges().shift((1, 5), (8, 6)) == (0, 2)
    assert Edges(shift_together=True).shift((4, 4), (4, 8)) == (0, 0)
    assert Edges().size((4, 4), (3, 8)) == (3, 4)
    assert Edges(shrink=False).size((4, 4), (3, 8)) == (4, 4)
