"""Between a sequence of tokens and the map that a convolution reads."""

from jaxtyping import Float
from torch import Tensor


def to_map(
    x: Float[Tensor, "batch token dim"], grid: tuple[int, int]
) -> Float[Tensor, "batch dim row column"]:
    """Lay tokens out in rows and columns; nothing is copied, the channel stays last in memory."""
    return x.transpose(1, 2).unflatten(2, grid)


def to_tokens(
    x: Float[Tensor, "batch dim row column"],
) -> tuple[Float[Tensor, "batch token dim"], tuple[int, int]]:
    """Read a map row by row, and say what its rows and columns were."""
    return x.flatten(2).transpose(1, 2), (x.shape[2], x.shape[3])
