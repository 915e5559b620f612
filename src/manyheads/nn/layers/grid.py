"""Between a sequence of tokens and the map that a convolution reads."""

from manyheads.nn.shapes import FeatureMap, Grid, Tokens, check_axes


def to_map(x: Tokens, grid: Grid) -> FeatureMap:
    """Lay tokens out in rows and columns; nothing is copied, the channel stays last in memory."""
    check_axes(x, "batch token dim")
    return x.transpose(1, 2).unflatten(2, grid)


def to_tokens(x: FeatureMap) -> tuple[Tokens, Grid]:
    """Read a map row by row, and say what its rows and columns were."""
    return x.flatten(2).transpose(1, 2), (x.shape[2], x.shape[3])
