"""Two towers: an image encoder and a text encoder that write into one space of vectors.

An image and a text that belong together have similar vectors: Radford et al. 2021, "Learning
Transferable Visual Models From Natural Language Supervision" (CLIP); with a sigmoid instead of a
softmax over the batch, Zhai et al. 2023, "Sigmoid Loss for Language Image Pre-Training" (SigLIP).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.components import POSITIONS, TokenPositions
from manyheads.models.exported_graphs import Graph, images_input, tokens_input
from manyheads.models.model_config import ImageConfig
from manyheads.models.sized_tables import SizedTable
from manyheads.models.text_encoder import TextEncoderConfig, text_encoder
from manyheads.models.vit import VitConfig
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.masks import causal_mask, padding_mask
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import start_text
from manyheads.nn.shapes import Images, Mask, TokenIds, Tokens, check_ids

TEMPERATURE = 0.07  # at the beginning of training (CLIP, section 2.5)

Vectors = Float[Tensor, "batch embedding"]
TextPool = Literal["mean", "end", "last"]


@dataclass(frozen=True, kw_only=True)
class MatcherConfig(TextEncoderConfig):
    """Shape and parts of both towers; `dim`, `layers`, ... are those of the text's.

    The image tower is any image model: its classifier head is the projection into the common space.
    """

    tasks = ("match",)

    encoder: str = "vit-ti"  # name of the image tower's preset
    image: ImageConfig = field(default_factory=VitConfig)  # and its own Config: [model.image]
    embedding: int = 256  # width of the common space
    vocabulary: int = 8000
    dim: int = 256
    heads: int = 4
    ffn_dim: int = 1024
    layers: int = 4
    positions: TokenPositions = "sinusoidal"
    scale_embedding: bool = True  # by the root of dim
    causal: bool = False  # tokens of a text see those before them only, as in CLIP
    # What stands for a text: the mean of its tokens, the first end token, or the last of all, for
    # which padding is read like text.
    text_pool: TextPool = "mean"
    projection_bias: bool = False  # of the texts' projection
    scale_limit: float = 100.0  # of the learned scale (CLIP, section 2.5); 0: none
    # Learned, and added to every score: of the sigmoid loss, which begins with -10 because most
    # pairs of a batch do not belong together (SigLIP, section 3.2); None: there is none.
    score_bias: float | None = None
    pad: int = 0
    start: int | None = None  # token in front of a text
    end: int = 2

    def __post_init__(self) -> None:
        """Give the image model a head of the width of the common space."""
        if self.embedding < 1:
            raise UsageError(f"embedding is {self.embedding}: it must be at least 1.")
        object.__setattr__(self, "image", replace(self.image, classes=self.embedding))

    @property
    def sized_tables(self) -> Mapping[str, SizedTable]:
        """Those of the image tower."""
        return {f"images.{name}": table for name, table in self.image.sized_tables.items()}

    def graphs(self, model: Any) -> Sequence[Graph]:
        """Two graphs: the towers, from images and from ids to unit vectors."""
        images = images_input(self.image.channels, self.image.height, self.image.width)
        texts, limits = tokens_input(), {"tokens": self.max_length}
        return (
            Graph("images", Tower(model.encode_images, model), (images,), ("vectors",)),
            Graph("texts", Tower(model.encode_texts, model), (texts,), ("vectors",), limits),
        )

    def build(self) -> "Matcher":
        """Build the model with fresh weights."""
        return Matcher(self)


def token_mean(x: Tokens, tokens: TokenIds, config: MatcherConfig) -> Float[Tensor, "batch dim"]:
    """Average the tokens of each text that are not padding."""
    real = (tokens != config.pad).unsqueeze(-1)
    return (x * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)


def first_end(x: Tokens, tokens: TokenIds, config: MatcherConfig) -> Float[Tensor, "batch dim"]:
    """Take the first end token of each text; its first token where it has none."""
    ends = (tokens == config.end).int().argmax(dim=1)
    return x[torch.arange(len(x), device=x.device), ends]


def last_token(x: Tokens, _tokens: TokenIds, _config: MatcherConfig) -> Float[Tensor, "batch dim"]:
    """Take the last token of each text, padding or not."""
    return x[:, -1]


TEXT_POOLS: dict[TextPool, Callable[[Tensor, Tensor, MatcherConfig], Tensor]] = {
    "mean": token_mean,
    "end": first_end,
    "last": last_token,
}


class TextTower(nn.Module):
    """One vector for a text, projected."""

    def __init__(self, config: MatcherConfig) -> None:
        super().__init__()
        self.config = config
        self.scale = math.sqrt(config.dim) if config.scale_embedding else 1.0
        padding = config.pad if config.text_pool == "mean" else None  # else it is read
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=padding)
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.dropout = Dropout(config.dropout)
        self.encoder = text_encoder(config)
        for layer, block in enumerate(self.encoder.blocks):  # "encoder" is the image tower's
            block.attention.layer_id = LayerId("text encoder", layer, "self")
        self.pool = TEXT_POOLS[config.text_pool]
        self.projection = Linear(config.dim, config.embedding, bias=config.projection_bias)
        nn.init.normal_(self.projection.weight, std=config.dim**-0.5)
        if self.projection.bias is not None:
            nn.init.zeros_(self.projection.bias)
        initial.embeddings(self)

    def forward(self, tokens: TokenIds) -> Vectors:
        """Return a vector for each text."""
        check_ids(tokens)
        start_text()
        x = self.dropout(self.positions(self.embedding(tokens) * self.scale))
        x = self.encoder(x, self.mask(tokens))
        return self.projection(self.pool(x, tokens, self.config))

    def mask(self, tokens: TokenIds) -> Mask | None:
        """Hide padding and what comes later; behind a text, padding is what comes later."""
        if self.config.causal:
            return causal_mask(tokens.shape[1], tokens.device)
        return None if self.config.text_pool == "last" else padding_mask(tokens, self.config.pad)


class Matcher(nn.Module):
    """Images and texts in, unit vectors out; their products, scaled, are the scores of pairs."""

    forward_methods: ClassVar[tuple[str, ...]] = ("encode_images", "encode_texts", "scores")

    def __init__(self, config: MatcherConfig) -> None:
        super().__init__()
        self.config = config
        self.images = config.image.build()
        head = getattr(self.images, "head", None)
        if not isinstance(head, nn.Linear):
            raise UsageError(
                f"{type(self.images).__name__} cannot be the image tower: it has no linear head "
                "to project with."
            )
        projections = (each for each in self.images.modules() if isinstance(each, Head))
        for each in dict.fromkeys((head, *projections)):  # a DeiT has two
            nn.init.normal_(each.weight, std=each.in_features**-0.5)  # a classifier's begins with 0
        self.texts = TextTower(config)
        self.log_scale = nn.Parameter(torch.tensor(-math.log(TEMPERATURE)))
        if config.score_bias is not None:
            self.bias = nn.Parameter(torch.tensor(float(config.score_bias)))
            nn.init.constant_(self.log_scale, math.log(10))  # SigLIP, algorithm 1
        else:
            self.register_buffer("bias", torch.zeros(()), persistent=False)

    def forward(
        self, images: Images, tokens: Int[Tensor, "text token"]
    ) -> tuple[Vectors, Float[Tensor, "text embedding"]]:
        """Return the unit vectors of images and of texts; an image may have several texts."""
        return self.encode_images(images), self.encode_texts(tokens)

    def encode_images(self, images: Images) -> Vectors:
        """Return the unit vectors of images."""
        found = self.images(images)
        if isinstance(found, tuple):  # in training, a DeiT answers from each of its two tokens
            found = torch.stack(found).mean(dim=0)
        return F.normalize(found.float(), dim=-1)

    def encode_texts(self, tokens: TokenIds) -> Vectors:
        """Return the unit vectors of texts."""
        return F.normalize(self.texts(tokens).float(), dim=-1)

    def scores(
        self, images: Float[Tensor, "image embedding"], texts: Float[Tensor, "text embedding"]
    ) -> Float[Tensor, "image text"]:
        """Score every pair: scale times the cosine, plus the bias."""
        limit = self.config.scale_limit
        log_scale = self.log_scale.clamp(max=math.log(limit)) if limit else self.log_scale
        return log_scale.exp() * images @ texts.T + self.bias


class Tower(nn.Module):
    """One side of a matcher, as a module of its own."""

    def __init__(self, encode: Callable[[Tensor], Tensor], model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.encode = encode

    def forward(self, given: Tensor) -> Vectors:
        """Return the unit vectors of images (row, channel, y, x), or of texts (row, token)."""
        return self.encode(given)
