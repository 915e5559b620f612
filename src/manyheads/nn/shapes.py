"""The shapes that many signatures share, each by a name.

Names of dimensions in them are bound like all others in a signature: `dim` is one number in a call.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

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
PerBeam = Int[Tensor, "sentence beam"]  # a token each, or the number of a beam
Prefixes = Int[Tensor, "sentence beam length"]  # the outputs so far, without the start token
BeamVectors = Float[Tensor, "sentence beam dim"]
Scores = Float[Tensor, "sentence beam vocabulary"]
Kept = Int[Tensor, " kept"]  # sentences or rows
SourceWeights = Float[Tensor, "sentence beam source"]
