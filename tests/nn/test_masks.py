"""The mask language: boolean, True = may attend, (batch, head, query, key)."""

import torch

from manyheads.nn.layers.masks import causal_mask, padding_mask


def test_causal_mask_by_hand() -> None:
    """T13: position t sees 0..t; the upper triangle is closed."""
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(3).tolist() == [[expected]]
    assert causal_mask(3).dtype == torch.bool


def test_padding_mask_by_hand() -> None:
    """Padding may not be attended to, by any head, from any query."""
    tokens = torch.tensor([[7, 8, 9], [7, 0, 0]])
    mask = padding_mask(tokens, pad=0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, True], [True, False, False]]


def test_masks_are_combined_with_and() -> None:
    """T13: a decoder over a padded target sees neither the future nor padding."""
    mask = causal_mask(3) & padding_mask(torch.tensor([[0, 8, 9]]), pad=0)
    expected = [[False, False, False], [False, True, False], [False, True, True]]
    assert mask.tolist() == [[expected]]
