"""From the last vector to words."""

import math

import torch

from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.output_head import logits


def test_a_word_by_hand() -> None:
    """T15: a score a word of the vocabulary; softmax of 4 : 2 : 1 is 4/7, 2/7, 1/7."""
    vocabulary = Linear(2, 3, bias=False)  # three words, a row of W^T each
    with torch.no_grad():
        vocabulary.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, -1.0]]))
    x = torch.tensor([[2 * math.log(2), math.log(2)]])
    scores = logits(vocabulary, x)  # 2 ln 2, ln 2 and ln 2 - ln 2 = 0: 4 : 2 : 1
    torch.testing.assert_close(scores.softmax(dim=-1), torch.tensor([[4 / 7, 2 / 7, 1 / 7]]))
    assert scores.argmax(dim=-1).tolist() == [0]
