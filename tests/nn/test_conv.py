"""Convolution-projected attention: fewer keys, the same attention."""

import torch
from torch import nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.conv import ConvProjectedAttention, DepthwiseProjection
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.recording.trace import record


def seeing_only_itself(projection: DepthwiseProjection) -> None:
    """Make the convolution the identity."""
    nn.init.zeros_(projection.convolve.weight)
    projection.convolve.weight.data[:, :, 1, 1] = 1


def test_a_depthwise_projection_by_hand() -> None:
    """V17: a kernel of ones adds up 3 x 3 neighbours; the extra token passes by."""
    part = DepthwiseProjection(1, kernel=3, stride=2, extra=1).eval()
    nn.init.ones_(part.convolve.weight)
    part.norm.eps = 0.0  # fresh statistics: mean 0, variance 1
    x = torch.tensor([100.0, 1, 2, 3, 4, 5, 6]).view(1, 7, 1)  # 100, then 1 2 3 / 4 5 6
    assert part(x, (2, 3)).flatten().tolist() == [100.0, 1 + 2 + 4 + 5, 2 + 3 + 5 + 6]


def test_without_neighbours_it_is_plain_attention() -> None:
    """With identities for convolutions and no stride, it is what MultiHeadAttention is."""
    torch.manual_seed(0)
    attention = ConvProjectedAttention(8, 2, stride=1, extra=1).eval()
    for projection in (attention.query, attention.key, attention.value):
        seeing_only_itself(projection)
        projection.norm.eps = 0.0
    plain = MultiHeadAttention(8, 2).eval()
    plain.load_state_dict(
        {n: t for n, t in attention.state_dict().items() if n.startswith(("qkv", "out"))}
    )
    x = torch.randn(2, 1 + 12, 8)
    torch.testing.assert_close(attention(x, (3, 4)), plain(x))


def test_a_stride_leaves_fewer_keys() -> None:
    """Section 3.3: a stride of 2 leaves a quarter of the keys; every query stays."""
    attention = ConvProjectedAttention(8, 2, extra=1).eval()
    x = torch.randn(2, 1 + 5 * 6, 8)
    with record() as trace:
        assert attention(x, (5, 6)).shape == x.shape
    (entry,) = trace
    assert isinstance(entry, SoftmaxRecord)
    assert entry.weights().shape == (2, 2, 1 + 30, 1 + 9)
