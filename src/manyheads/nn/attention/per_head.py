"""Multi-head attention exactly as the paper writes it: h separate projections, then W_O.

MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O with head_i = Attention(Q W_i^Q, K W_i^K,
V W_i^V) (Vaswani et al. 2017, 3.2.2). A reference to read and to test against: the packed form in
`attention.py` computes the same numbers with one matrix product.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.softmax import attention_weights
from manyheads.nn.shapes import Mask


class PerHeadAttention(nn.Module):
    """h heads, each with its own W^Q, W^K, W^V of shape (dim, dim / h)."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        size = dim // heads
        self.queries, self.keys, self.values = (
            nn.ModuleList(nn.Linear(dim, size) for _ in range(heads)) for _ in range(3)
        )
        self.out = nn.Linear(dim, dim)

    @classmethod
    def of(cls, packed: MultiHeadAttention) -> "PerHeadAttention":
        """Take a packed attention apart: head i owns rows i*size..(i+1)*size of each projection."""
        dim = packed.out.in_features
        attention = cls(dim, packed.heads)
        weights = packed.qkv.weight.detach().unflatten(0, (3, packed.heads, -1))
        biases = packed.qkv.bias.detach().unflatten(0, (3, packed.heads, -1))
        groups = (attention.queries, attention.keys, attention.values)
        for group, weight, bias in zip(groups, weights, biases, strict=True):
            for head, head_weight, head_bias in zip(group, weight, bias, strict=True):
                head.load_state_dict({"weight": head_weight, "bias": head_bias})
        attention.out.load_state_dict(packed.out.state_dict())
        return attention

    def forward(
        self,
        x: Float[Tensor, "batch query dim"],
        source: Float[Tensor, "batch key dim"],
        mask: Mask | None = None,
    ) -> Float[Tensor, "batch query dim"]:
        """Attend from x to source; pass x twice for self-attention. The mask has no head axis."""
        heads = [
            attention_weights(query(x), key(source), mask) @ value(source)
            for query, key, value in zip(self.queries, self.keys, self.values, strict=True)
        ]
        return self.out(torch.cat(heads, dim=-1))
