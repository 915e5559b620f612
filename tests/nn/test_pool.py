"""From tokens to one vector."""

import torch

from manyheads.nn.pool import ClassToken, MeanPool


def test_class_token_stands_in_front() -> None:
    """V2: one learned token, the same for every image, and its final vector is the answer."""
    pool = ClassToken(2)
    x = torch.tensor([[[1.0, 2], [3, 4]], [[5, 6], [7, 8]]])
    tokens = pool.prepend(x)
    assert tokens.shape == (2, 3, 2)
    assert torch.equal(tokens[0, 0], tokens[1, 0])
    assert torch.equal(tokens[:, 1:], x)
    assert torch.equal(pool(tokens), tokens[:, 0])
    assert pool.extra == 1


def test_mean_pool_by_hand() -> None:
    """V2: the mean over tokens, ((1, 2) + (3, 4)) / 2 = (2, 3), and no extra token."""
    pool = MeanPool(2)
    x = torch.tensor([[[1.0, 2], [3, 4]]])
    assert pool.prepend(x) is x
    assert pool(x).tolist() == [[2.0, 3.0]]
    assert pool.extra == 0
