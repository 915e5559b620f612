"""How far a convolution sees: by the formula, and counted (Araujo et al. 2019)."""

from torch import Tensor, nn


def receptive_field(layers: int, kernel: int = 3) -> int:
    """Pixels of a row that one output of so many convolutions with stride 1 depends on."""
    return kernel + (kernel - 1) * (layers - 1)


def layers_needed(pixels: int, kernel: int = 3) -> int:
    """The least number of convolutions with stride 1 that see so many pixels."""
    layers = 1
    while receptive_field(layers, kernel) < pixels:
        layers += 1
    return layers


def seen(part: nn.Module, pictures: Tensor, place: int) -> int:
    """Pixels of a row that an output at `place` of the middle row really depends on.

    Counted where the gradient is not zero, from the first such pixel to the last.
    """
    given = pictures.clone().requires_grad_()
    found = part(given)
    found[:, :, found.shape[2] // 2, place].sum().backward()
    assert given.grad is not None
    touched = given.grad.abs().sum(dim=(0, 1, 2)).nonzero()
    return int(touched.max() - touched.min()) + 1
