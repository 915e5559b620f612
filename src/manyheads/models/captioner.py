"""An image encoder and a text decoder: an image in, a text out.

Any image model of the package encodes: the vectors of its tokens, or of the places of its last
feature map, are what the decoder of the Transformer attends to. Xu et al. 2015, "Show, Attend and
Tell", with the encoder of Dosovitskiy et al. 2021 and the decoder of Vaswani et al. 2017. The
language of the text is its first token.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.components import POSITIONS, FeedForwardName, Norm, TokenPositions
from manyheads.models.encoder_decoder import DecoderConfig, EncoderDecoder, decoder
from manyheads.models.exported_graphs import GraphInput, images_input
from manyheads.models.image_features import feature_encoder, feature_tokens
from manyheads.models.model_config import ImageConfig
from manyheads.models.sized_tables import SizedTable
from manyheads.models.vit import VitConfig
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.output_head import OutputFn, logits, output_layer
from manyheads.nn.recording.tracking import track_memory
from manyheads.nn.shapes import Images, Mask, Tokens


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig(DecoderConfig):
    """Shape and parts of a captioner."""

    tasks = ("caption",)

    encoder: str = "vit-ti"  # name of the image encoder's preset
    image: ImageConfig = field(default_factory=VitConfig)  # and its own Config: [model.image]
    vocabulary: int = 8000
    dim: int = 256
    heads: int = 4
    ffn_dim: int = 1024
    decoder_layers: int = 3
    tied: bool = True  # one matrix for the embedding and the output layer
    norm: Norm = "pre"
    activation: FeedForwardName = "gelu"
    positions: TokenPositions = "sinusoidal"
    embedding_norm: bool = False  # LayerNorm over the sum of tokens and positions
    # A linear layer from the encoder's width to the decoder's; without, the attention to the image
    # reads the encoder's vectors as they are.
    bridge: bool = True

    @property
    def source_dim(self) -> int:
        """Width of the vectors that the decoder attends to."""
        return self.dim if self.bridge else self.image.feature_dim

    def __post_init__(self) -> None:
        if not self.image.feature_dim:
            raise UsageError(
                f"{type(self.image).__name__} has no features for parts of an image: choose an "
                "encoder with tokens or a feature map, such as vit-ti, cct-7/3x2, swin-t or "
                "resnet-18."
            )

    @property
    def sized_tables(self) -> Mapping[str, SizedTable]:
        """Those of the image encoder."""
        return {f"encoder.{name}": table for name, table in self.image.sized_tables.items()}

    @property
    def source_input(self) -> GraphInput:
        """Images of the encoder's size."""
        image = self.image
        return images_input(image.channels, image.height, image.width, rows="sentences")

    def build(self) -> "Captioner":
        """Build the model with fresh weights."""
        return Captioner(self)


class Captioner(EncoderDecoder[CaptionerConfig]):
    """Images in, logits over the vocabulary out; decodes through the Step protocol."""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.config = config
        self.target_embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=config.pad)
        self.output = output_layer(self.target_embedding, tied=config.tied, bias=config.output_bias)
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.embedding_norm = (
            nn.LayerNorm(config.dim, eps=config.norm_eps)
            if config.embedding_norm
            else nn.Identity()
        )
        self.dropout = Dropout(config.dropout)
        self.bridge = (
            Linear(config.image.feature_dim, config.dim) if config.bridge else nn.Identity()
        )
        self.decoder = decoder(config)
        initial.xavier(self)
        initial.embeddings(self)
        self.encoder = feature_encoder(config.image)  # it draws its own weights

    def forward(
        self,
        images: Images,
        target: Int[Tensor, "caption target"],
        owners: Int[Tensor, " caption"] | None = None,
        scored: Bool[Tensor, "caption target"] | None = None,
        readout: OutputFn = logits,
    ) -> Float[Tensor, "..."]:
        """Score every next token of captions that begin with the start token (teacher forcing).

        Args:
            images: normalised.
            target: token ids, padded.
            owners: index of each caption's image; None: one caption an image. An image with several
                captions is encoded once.
            scored: positions to score, which spares the output layer the others; all if None.
            readout: function of the output layer and the decoder's vectors: logits, or a loss.

        Returns:
            Logits (caption, target, vocabulary) or (scored, vocabulary), or what readout returns.
        """
        return self.write(target, self.encode(images), None, scored, readout, owners)

    def encode(self, images: Images) -> Float[Tensor, "batch source dim"]:
        """Return a vector for every part of an image."""
        return track_memory(self.bridge(feature_tokens(self.encoder.features(images))))

    def place(self, x: Tokens, first: int = 0) -> Tokens:
        """Add positions, then the norm behind them, if there is one."""
        return self.embedding_norm(super().place(x, first))

    def memory_mask(self, source: Images) -> Mask | None:
        """Nothing of an image is padding."""
        return None
