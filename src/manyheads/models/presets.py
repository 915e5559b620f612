"""Preset sizes by name: one plain dict."""

from dataclasses import replace

from manyheads.errors import UsageError, nearest
from manyheads.models.transformer import TransformerConfig
from manyheads.models.vit import VitConfig

Config = TransformerConfig | VitConfig

PRESETS: dict[str, Config] = {
    # Multi30k and sets of its size: 4 + 4 layers of width 128
    "transformer-tiny": TransformerConfig(
        dim=128, heads=4, hidden=256, encoder_layers=4, decoder_layers=4, dropout=0.3
    ),
    "transformer-small": TransformerConfig(
        dim=256, heads=4, hidden=1024, encoder_layers=4, decoder_layers=4, dropout=0.1
    ),
    # Vaswani et al. 2017, table 3
    "transformer-base": TransformerConfig(),
    "transformer-big": TransformerConfig(dim=1024, heads=16, hidden=4096, dropout=0.3),
    # Kasai et al. 2021: decoding time lies in the decoder, quality in the encoder
    "transformer-deep": TransformerConfig(encoder_layers=12, decoder_layers=1),
    # Touvron et al. 2021, table 1 (Ti, S); Dosovitskiy et al. 2021, table 1 (B, L, H)
    "vit-ti": VitConfig(dim=192, heads=3, hidden=768),
    "vit-s": VitConfig(dim=384, heads=6, hidden=1536),
    "vit-b": VitConfig(),
    "vit-l": VitConfig(dim=1024, layers=24, heads=16, hidden=4096),
    "vit-h": VitConfig(dim=1280, layers=32, heads=16, hidden=5120, patch=14),
}


def preset(name: str) -> Config:
    """Look up a preset; a ViT's patch size may follow a slash: "vit-b/32".

    Raises:
        UsageError: no such preset.
    """
    base, _, patch = name.partition("/")
    config = PRESETS.get(base)
    if config is None or (patch and not (patch.isdigit() and isinstance(config, VitConfig))):
        raise UsageError(
            f"There is no preset {name!r}. {nearest(base, PRESETS)}Presets: {', '.join(PRESETS)}; "
            'the ViTs with any patch size, as in "vit-b/32".'
        )
    return replace(config, patch=int(patch)) if isinstance(config, VitConfig) and patch else config
