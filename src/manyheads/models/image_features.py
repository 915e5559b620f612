"""An image model without its classifier: the features that a captioner or a matcher builds on."""

from dataclasses import replace
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.models.image_encoder import POOLS
from manyheads.models.model_config import ImageConfig
from manyheads.nn.blocks.pool import MeanPool
from manyheads.nn.shapes import FeatureMap, Tokens


def feature_encoder(config: ImageConfig) -> Any:
    """Build an image model for its features alone, without the modules behind them.

    `features(images)` gives the vectors of tokens, or of the places of a feature map.
    """
    own: Any = config
    if hasattr(own, "pool") and issubclass(POOLS[own.pool], MeanPool):
        config = replace(own, pool="mean")  # a pool that adds no tokens is behind them, too
    model = config.build()
    for name in config.behind_features:
        setattr(model, name, nn.Identity())
    return model


def feature_tokens(features: Tokens | FeatureMap) -> Float[Tensor, "batch token dim"]:
    """Write the places of a feature map in a row; tokens stay as they are."""
    return features.flatten(2).transpose(1, 2) if features.ndim == 4 else features
