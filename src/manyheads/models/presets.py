"""Preset sizes by name: one plain dict, and functions to look up, add and build them."""

import sys
from dataclasses import replace
from types import FrameType
from typing import TypeVar, overload

from torch import nn

from manyheads.errors import UsageError, nearest
from manyheads.models.captioner import CaptionerConfig
from manyheads.models.causal_lm import CausalConfig
from manyheads.models.cct import CctConfig
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.config import Builds, ModelConfig, lacking
from manyheads.models.cvt import CvtConfig
from manyheads.models.deit import DeitConfig
from manyheads.models.hybrid import HybridConfig
from manyheads.models.line_reader import LineReaderConfig
from manyheads.models.masked_lm import MaskedConfig
from manyheads.models.matcher import MatcherConfig
from manyheads.models.mlp import MlpConfig
from manyheads.models.resnet import ResNetConfig
from manyheads.models.resnet_v2 import ResNetV2Config, bit
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.swin import SwinConfig
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.models.vgg import VggConfig
from manyheads.models.vit import VitConfig
from manyheads.registration import register

M = TypeVar("M", bound=nn.Module)

SMALL = VitConfig(
    height=32,
    width=32,
    patch=4,
    dim=256,
    layers=7,
    heads=4,
    ffn_dim=512,
    classes=10,
    norm_eps=1e-5,
    qkv_bias=False,
)


SMALL_CCT = CctConfig(
    height=64,
    width=64,
    dim=192,
    heads=4,
    ffn_dim=384,
    pool="mean",
)


def _basic(depths: tuple[int, ...]) -> ResNetConfig:
    widths = (64, 128, 256, 512)
    return ResNetConfig(block="basic", depths=depths, widths=widths, outputs=widths)


def _thin(blocks: int) -> ResNetConfig:
    """A ResNet for 32 pixels: 6 * blocks + 2 layers (He et al. 2016, section 4.2)."""
    widths = (16, 32, 64)
    return ResNetConfig(
        height=32,
        width=32,
        stem="plain",
        stem_width=16,
        block="basic",
        depths=(blocks, blocks, blocks),
        widths=widths,
        outputs=widths,
        classes=10,
    )


PRESETS: dict[str, ModelConfig] = {
    # Multi30k and sets of its size: 4 + 4 layers of width 128
    "transformer-tiny": TransformerConfig(
        dim=128, heads=4, ffn_dim=256, encoder_layers=4, decoder_layers=4, dropout=0.3
    ),
    "transformer-small": TransformerConfig(
        dim=256, heads=4, ffn_dim=1024, encoder_layers=4, decoder_layers=4, dropout=0.1
    ),
    # Vaswani et al. 2017, table 3
    "transformer-base": TransformerConfig(),
    "transformer-big": TransformerConfig(dim=1024, heads=16, ffn_dim=4096, dropout=0.3),
    # Kasai et al. 2021: decoding time lies in the decoder, quality in the encoder
    "transformer-deep": TransformerConfig(encoder_layers=12, decoder_layers=1),
    # What came before, at one budget: with a shared vocabulary of 8,000 each has 2.88M parameters
    # (within 1%), as has transformer-tiny with ffn_dim = 512. Without attention the source is one
    # vector (Cho et al. 2014, Sutskever et al. 2014); with it, Luong et al. 2015.
    "seq2seq-rnn": Seq2SeqConfig(
        cell="rnn", dim=192, hidden_size=768, attention="none", dropout=0.3
    ),
    "seq2seq-lstm": Seq2SeqConfig(
        cell="lstm", dim=192, hidden_size=352, attention="none", dropout=0.3
    ),
    "seq2seq-gru": Seq2SeqConfig(
        cell="gru", dim=192, hidden_size=416, attention="none", dropout=0.3
    ),
    "seq2seq-lstm-attention": Seq2SeqConfig(
        cell="lstm", dim=192, hidden_size=320, attention="general", dropout=0.3
    ),
    "seq2seq-gru-attention": Seq2SeqConfig(
        cell="gru", dim=192, hidden_size=376, attention="general", dropout=0.3
    ),
    # An image encoder under the decoder of a Transformer (atlas M2): for images of 64 pixels, with
    # three convolutions in front; and on the patches of a ViT
    "captioner-tiny": CaptionerConfig(
        encoder="cct-7/3x2",
        image=replace(SMALL_CCT, convolutions=3, layers=4),
        dim=192,
        heads=4,
        ffn_dim=384,
        decoder_layers=2,
        dropout=0.1,
    ),
    "captioner-vit-ti": CaptionerConfig(image=VitConfig(dim=192, heads=3, ffn_dim=768)),
    # Two towers (atlas M2), for images of 64 pixels and of 48
    "matcher-tiny": MatcherConfig(
        encoder="cct-7/3x2",
        image=replace(SMALL_CCT, convolutions=3, layers=4, pool="sequence"),
        dim=192,
        heads=4,
        ffn_dim=384,
        layers=2,
        dropout=0.1,
    ),
    "matcher-vit-ti": MatcherConfig(image=VitConfig(dim=192, heads=3, ffn_dim=768)),
    # The encoder and the decoder alone (atlas T20), of the size of transformer-tiny's
    "gpt-tiny": CausalConfig(dim=128, layers=4, heads=4, ffn_dim=256, positions="sinusoidal"),
    "bert-tiny": MaskedConfig(
        dim=128, layers=4, heads=4, ffn_dim=256, positions="sinusoidal", norm="pre"
    ),
    # Radford et al. 2019, table 2; Devlin et al. 2019, section 3
    "gpt2-small": CausalConfig(),
    "bert-base": MaskedConfig(),
    # One answer a token (atlas T1): the same task on each cell, and on the encoder stack
    "tagger-rnn": RecurrentTaggerConfig(cell="rnn"),
    "tagger-gru": RecurrentTaggerConfig(cell="gru"),
    "tagger-lstm": RecurrentTaggerConfig(cell="lstm"),
    "tagger-encoder": EncoderTaggerConfig(),
    # Touvron et al. 2021, table 1 (Ti, S); Dosovitskiy et al. 2021, table 1 (B, L, H)
    "vit-ti": VitConfig(dim=192, heads=3, ffn_dim=768),
    "vit-s": VitConfig(dim=384, heads=6, ffn_dim=1536),
    "vit-b": VitConfig(),
    "vit-l": VitConfig(dim=1024, layers=24, heads=16, ffn_dim=4096),
    "vit-h": VitConfig(dim=1280, layers=32, heads=16, ffn_dim=5120, patch=14),
    # Touvron et al. 2021, table 1, with the distillation token (table 5)
    "deit-ti": DeitConfig(dim=192, heads=3, ffn_dim=768),
    "deit-s": DeitConfig(dim=384, heads=6, ffn_dim=1536),
    "deit-b": DeitConfig(),
    # Hassani et al. 2021, tables 1 and 2, for 32 x 32 pixels; without the two convolutions of the
    # stem (ViT-Lite) and with its pooling alone (CVT), on patches of 4 x 4
    "cct-2/3x2": CctConfig(convolutions=2, dim=128, layers=2, heads=2, ffn_dim=128),
    "cct-4/3x2": CctConfig(convolutions=2, dim=128, layers=4, heads=2, ffn_dim=128),
    "cct-6/3x1": CctConfig(layers=6),
    "cct-6/3x2": CctConfig(convolutions=2, layers=6),
    "cct-7/3x1": CctConfig(),
    "cct-7/3x2": CctConfig(convolutions=2),
    "vit-lite-7": SMALL,
    "compact-vit-7": replace(SMALL, pool="sequence"),
    # Liu et al. 2021, section 3.3
    "swin-t": SwinConfig(),
    "swin-s": SwinConfig(layers=(2, 2, 18, 2)),
    "swin-b": SwinConfig(dim=128, layers=(2, 2, 18, 2), heads=(4, 8, 16, 32)),
    # Wu et al. 2021, table 2
    "cvt-13": CvtConfig(),
    "cvt-21": CvtConfig(layers=(1, 4, 16)),
    # Dai et al. 2021, table 3
    "coatnet-0": CoatnetConfig(),
    "coatnet-1": CoatnetConfig(layers=(2, 6, 14, 2)),
    "coatnet-2": CoatnetConfig(stem=(128, 128), dims=(128, 256, 512, 1024), layers=(2, 6, 14, 2)),
    "coatnet-3": CoatnetConfig(stem=(192, 192), dims=(192, 384, 768, 1536), layers=(2, 6, 14, 2)),
    # Dosovitskiy et al. 2021, R50+ViT-B/16; Steiner et al. 2022, R+Ti/16, R26+S/32, R50+L/32
    "hybrid-r-ti": HybridConfig(depths=(), patch=8, dim=192, heads=3, ffn_dim=768),
    "hybrid-r26-s": HybridConfig(depths=(2, 2, 2, 2), dim=384, heads=6, ffn_dim=1536),
    "hybrid-r50-b": HybridConfig(),
    "hybrid-r50-l": HybridConfig(depths=(3, 4, 6, 3), dim=1024, layers=24, heads=16, ffn_dim=4096),
    # What has no attention, for comparison: values without an order, and convolutions
    "mlp": MlpConfig(),
    # Printed lines of 32 pixels, 4 pixels a column
    "line-reader": LineReaderConfig(),
    # Simonyan & Zisserman 2015, table 1 (D); Ioffe & Szegedy 2015 came after it
    "vgg-16": VggConfig(),
    "vgg-16-bn": VggConfig(norm="batch"),
    # He et al. 2016, table 1; for 32 pixels, section 4.2
    "resnet-18": _basic((2, 2, 2, 2)),
    "resnet-34": _basic((3, 4, 6, 3)),
    "resnet-50": ResNetConfig(),
    "resnet-101": ResNetConfig(depths=(3, 4, 23, 3)),
    "resnet-152": ResNetConfig(depths=(3, 8, 36, 3)),
    "resnet-20": _thin(3),
    "resnet-32": _thin(5),
    "resnet-56": _thin(9),
    # Kolesnikov et al. 2020, section 3
    "bit-50x1": ResNetV2Config(),
    "bit-50x3": bit((3, 4, 6, 3), 3),
    "bit-101x1": bit((3, 4, 23, 3), 1),
    "bit-101x3": bit((3, 4, 23, 3), 3),
    "bit-152x2": bit((3, 8, 36, 3), 2),
    "bit-152x4": bit((3, 8, 36, 3), 4),
}


REGISTERED_BY: dict[str, str] = {}  # presets, and the modules that registered them


def preset(name: str) -> ModelConfig:
    """Look up a preset; a ViT's patch size may follow a slash: "vit-b/32".

    Raises:
        UsageError: no such preset.
    """
    if not isinstance(name, str):
        raise UsageError(f'{name!r} is not the name of a preset: give one, such as "vit-b/16".')
    base, _, suffix = name.partition("/")
    found = PRESETS.get(name)
    if found is None and suffix and base in PRESETS:
        found = PRESETS[base].variant(suffix)
    if found is None:
        raise UsageError(
            f"There is no preset {name!r}{nearest(base, PRESETS)}Presets: {', '.join(PRESETS)}; "
            'the ViTs with any patch size, as in "vit-b/32".'
        )
    return found


def register_preset(name: str, config: ModelConfig) -> None:
    """Add a preset under a new name, for recipes (`model.preset`), `build` and `preset`.

    The config is a frozen dataclass that inherits `ModelConfig`, or has all of its members.

    Raises:
        UsageError: the name is no text, empty, or exists; the object is not a model's Config.
    """
    base, _, suffix = str(name).partition("/")
    if suffix and base in PRESETS and PRESETS[base].variant(suffix):
        raise UsageError(f"There is a preset {name!r} already: choose another name.")
    wanted = "A preset is a frozen dataclass that inherits manyheads.models.ModelConfig."
    register(PRESETS, "a preset", name, config, wanted, lacking(config))
    REGISTERED_BY[name] = _caller()


def _caller() -> str:
    """Name the module that called this one; in tests, jaxtyping's checks stand between."""
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_globals["__name__"].startswith((__name__, "jaxtyping.")):
        frame = frame.f_back
    return str(frame.f_globals["__name__"]) if frame else "__main__"


@overload
def build(config: str) -> nn.Module: ...
@overload
def build(config: Builds[M]) -> M: ...
def build(config: Builds[M] | str) -> M | nn.Module:
    """Build a model from its Config or the name of a preset; torch's generator draws the weights.

    Raises:
        UsageError: there is no preset of this name, or it is neither a name nor a Config.
    """
    if isinstance(config, type) or not isinstance(config, str | Builds):
        raise UsageError(
            f"{config!r} is neither a Config nor the name of a preset: give a name, such as "
            '"vit-b/16", or a Config with its values, such as VitConfig(classes=10).'
        )
    return preset(config).build() if isinstance(config, str) else config.build()
