"""A reader of printed lines: convolutions, an encoder over columns, and CTC (Graves et al. 2006).

The layout is that of CRNN (Shi et al. 2017, figure 1), with an encoder stack in place of its LSTM.
Each column of a few pixels scores every character and "blank"; `decode/ctc.py` turns the scores of
all columns into a text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.components import TokenPositions
from manyheads.models.exported_graphs import Graph, images_input
from manyheads.models.model_config import check_stages
from manyheads.models.text_encoder import TextEncoderConfig, text_encoder
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.linear import Linear
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import start_image, track_modules
from manyheads.nn.shapes import Images, Tokens
from manyheads.nn.vision.convolution import Convolution, NormedConvolution, initialise


@dataclass(frozen=True, kw_only=True)
class LineReaderConfig(TextEncoderConfig):
    """Shape and parts of a line reader; each convolution of the stem has three numbers."""

    tasks: ClassVar[tuple[str, ...]] = ("read",)

    vocabulary: int = 256
    pad: int = 0  # the id of "blank"
    line_height: int = 32
    widths: tuple[int, ...] = (32, 64, 128, 192)
    row_strides: tuple[int, ...] = (2, 2, 2, 2)
    column_strides: tuple[int, ...] = (2, 2, 1, 1)  # their product is the pixels of a column
    dim: int = 192
    layers: int = 3
    heads: int = 4
    ffn_dim: int = 384
    dropout: float = 0.0
    positions: TokenPositions = "rotary"

    def __post_init__(self) -> None:
        check_stages(self, ("widths", "row_strides", "column_strides"))
        if self.line_height % prod(self.row_strides):
            raise UsageError(
                f"Lines are {self.line_height} pixels high, which the stem's row_strides, together "
                f"{prod(self.row_strides)}, do not divide: choose others."
            )

    @property
    def column_width(self) -> int:
        """Pixels from one column to the next."""
        return prod(self.column_strides)

    def graphs(self, model: Any) -> Sequence[Graph]:
        """One graph, from lines of any width to the logits of every column."""
        example = images_input(1, self.line_height, 8 * self.column_width)
        lines = example._replace(axes={0: "images", 3: "width"})
        limits = {"width": self.max_length * self.column_width}
        return (Graph("model", model, (lines,), ("logits",), limits),)

    def build(self) -> "LineReader":
        """Build the model with fresh weights."""
        return LineReader(self)


class LineReader(nn.Module):
    """Images of lines in, logits over characters for every column out."""

    def __init__(self, config: LineReaderConfig) -> None:
        super().__init__()
        self.config = config
        inputs = [1, *config.widths[:-1]]
        strides = zip(config.row_strides, config.column_strides, strict=True)
        self.stem: Sequence[NormedConvolution] = nn.ModuleList(  # type: ignore[assignment]
            NormedConvolution(Convolution(i, o, 3, stride=stride), nn.BatchNorm2d(o))
            for i, o, stride in zip(inputs, config.widths, strides, strict=True)
        )
        rows = config.line_height // prod(config.row_strides)
        self.columns = nn.Conv2d(config.widths[-1], config.dim, (rows, 1))
        self.dropout = Dropout(config.dropout)
        self.encoder = text_encoder(config)
        self.output = Linear(config.dim, config.vocabulary)
        initial.xavier(self.output)
        initialise(self)

    def forward(self, images: Images) -> Float[Tensor, "batch column vocabulary"]:
        """Score every character, and blank, for every column of normalised images."""
        return self.output(self.encoder(self.dropout(self.embed(images))))

    def embed(self, images: Images) -> Tokens:
        """Turn the pixels of lines into a vector a column."""
        start_image(images)
        x = images.contiguous(memory_format=torch.channels_last)
        for part in self.stem:
            track_modules([part.convolution])
            x = part(x).relu()
            record_features(x)
        track_modules([self.columns])
        return self.columns(x).squeeze(2).transpose(1, 2)
