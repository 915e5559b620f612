"""From a Config to its model."""

from manyheads.models.presets import Config
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vit import Vit


def build(config: Config) -> Transformer | Vit:
    """Build the model that a Config describes, with fresh weights from torch's generator."""
    if isinstance(config, TransformerConfig):
        return Transformer(config)
    return Vit(config)
