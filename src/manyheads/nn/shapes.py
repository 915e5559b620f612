"""The shapes that many signatures share, each by a name.

Names of dimensions in them are bound like all others in a signature: `dim` is one number in a call.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.errors import UsageError

Grid = tuple[int, int]  # rows and columns

Images = Float[Tensor, "batch channel height width"]
FeatureMap = Float[Tensor, "batch dim row column"]
Tokens = Float[Tensor, "batch token dim"]
ClassScores = Float[Tensor, "batch classes"]
TokenIds = Int[Tensor, "batch token"]
ChosenTokens = Bool[Tensor, "batch token"]
Mask = Bool[Tensor, "..."]  # broadcasts to (batch, head, query, key): see `layers/masks.py`
Bias = Float[Tensor, "..."]  # the same, added to scores

# In a search, whose batch is sentences with beams.
SourceIds = Int[Tensor, "sentence source"]
Sources = SourceIds | Float[Tensor, "sentence channel height width"]  # token ids, or images
PerBeam = Int[Tensor, "sentence beam"]  # a token each, or the number of a beam
Prefixes = Int[Tensor, "sentence beam length"]  # the outputs so far, without the start token
BeamVectors = Float[Tensor, "sentence beam dim"]
Scores = Float[Tensor, "sentence beam vocabulary"]
Kept = Int[Tensor, " kept"]  # sentences or rows
SourceWeights = Float[Tensor, "sentence beam source"]


def check_axes(x: Tensor, axes: str) -> None:
    """Refuse another number of axes, such as an example without the batch axis.

    Args:
        x: the input.
        axes: their names, as in "batch token dim".

    Raises:
        UsageError: there are more or fewer.
    """
    names = axes.split()
    if x.ndim != len(names):
        raise UsageError(
            f"The input has the shape {tuple(x.shape)}, not ({', '.join(names)}). For one example "
            "alone, `x[None]` adds the batch axis; `torch.stack` makes a batch of several."
        )


def check_ids(tokens: Tensor) -> None:
    """Refuse anything but a batch of token ids.

    Raises:
        UsageError: the batch axis is missing, or the values are no whole numbers.
    """
    check_axes(tokens, "batch token")
    if tokens.is_floating_point():
        raise UsageError(f"The tokens hold {tokens.dtype}, but a model reads whole numbers: ids.")
