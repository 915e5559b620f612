"""A block whose attention knows rows and columns: windows, convolutions."""

from manyheads.nn.blocks.block import SelfAttentionBlock
from manyheads.nn.recording.features import record_features
from manyheads.nn.shapes import Grid, Tokens


class GridBlock(SelfAttentionBlock):
    """A block whose attention is called with the tokens and their grid."""

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        """Mix tokens, then transform each."""
        record_features(x)
        x = self.entered(x)
        return self.finish(x, self.attention(self.around_attention.enter(x), grid))
