"""Every preset at test size: the parts of the real model, a few numbers wide."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from manyheads.models.airbench import AirbenchConfig
from manyheads.models.captioner import CaptionerConfig
from manyheads.models.causal_lm import CausalConfig
from manyheads.models.cct import CctConfig
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.cvt import CvtConfig
from manyheads.models.deit import DeitConfig
from manyheads.models.hybrid import HybridConfig
from manyheads.models.language_model import LanguageModelConfig
from manyheads.models.line_reader import LineReaderConfig
from manyheads.models.masked_lm import MaskedConfig
from manyheads.models.matcher import Matcher, MatcherConfig
from manyheads.models.mlp import MlpConfig
from manyheads.models.model_config import ImageConfig, ModelConfig
from manyheads.models.presets import PRESETS
from manyheads.models.resnet import ResNetConfig
from manyheads.models.resnet_v2 import ResNetV2Config
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.swin import SwinConfig
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig, TaggerConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.models.vgg import VggConfig
from manyheads.models.vit import VitConfig

M = TypeVar("M", bound=nn.Module)

Reader = CausalConfig | MaskedConfig | EncoderTaggerConfig  # of one text
Staged = SwinConfig | CvtConfig | CoatnetConfig  # of one image, in stages
ImageModel = VitConfig | CctConfig | Staged  # of one image, with attention
Convolutional = VggConfig | ResNetConfig | ResNetV2Config | AirbenchConfig
Images = ImageModel | MlpConfig | Convolutional  # that classify
Both = CaptionerConfig | MatcherConfig  # of images and texts
Stacked = TransformerConfig | ImageModel | Reader | Both | LineReaderConfig

TRANSFORMERS: dict[str, TransformerConfig] = {}
VITS: dict[str, VitConfig] = {}
DEITS: dict[str, DeitConfig] = {}
CCTS: dict[str, CctConfig] = {}
STAGED: dict[str, Staged] = {}
HYBRIDS: dict[str, HybridConfig] = {}
CONVOLUTIONAL: dict[str, Convolutional] = {}
SEQ2SEQS: dict[str, Seq2SeqConfig] = {}
READERS: dict[str, Reader] = {}
CAPTIONERS: dict[str, CaptionerConfig] = {}
MATCHERS: dict[str, MatcherConfig] = {}
LINE_READERS: dict[str, LineReaderConfig] = {}


def shrink_transformer(config: TransformerConfig) -> TransformerConfig:
    """Keep the parts and what is deep or shallow; make everything else small."""
    return replace(
        config,
        vocabulary=11,
        dim=8,
        heads=2,
        ffn_dim=16,
        encoder_layers=3 if config.encoder_layers > config.decoder_layers else 2,
        decoder_layers=1 if config.encoder_layers > config.decoder_layers else 2,
        max_length=16,
    )


def shrink_seq2seq(config: Seq2SeqConfig) -> Seq2SeqConfig:
    """Keep the parts; make everything else small, the states wider than the embeddings."""
    return replace(config, vocabulary=11, dim=6, hidden_size=8)


def shrink_reader(config: Reader) -> Reader:
    """Keep the parts; make everything else small."""
    return replace(config, vocabulary=11, dim=8, layers=2, heads=2, ffn_dim=16, max_length=16)


def shrink_vit(config: VitConfig) -> VitConfig:
    """Keep the parts; make everything else small, and the image not square."""
    return replace(
        config, height=4, width=6, patch=2, dim=8, layers=2, heads=2, ffn_dim=16, classes=5
    )


def shrink_deit(config: DeitConfig) -> DeitConfig:
    """Keep the parts, as `shrink_vit` does."""
    return replace(
        config, height=4, width=6, patch=2, dim=8, layers=2, heads=2, ffn_dim=16, classes=5
    )


def shrink_cct(config: CctConfig) -> CctConfig:
    """Keep the parts and the convolutions; make everything else small, the sizes odd."""
    return replace(
        config, height=5, width=7, stem=4, dim=8, layers=2, heads=2, ffn_dim=16, classes=5
    )


def shrink_staged(config: Staged) -> Staged:
    """Keep the parts in two stages; windows, strides and poolings do not fit the odd image."""
    if isinstance(config, SwinConfig):
        return replace(
            config,
            height=11,
            width=14,
            patch=2,
            dim=8,
            layers=(2, 2),
            heads=(2, 4),
            window=(4, 4),
            expansion=2.0,
            classes=5,
        )
    if isinstance(config, CvtConfig):
        return replace(
            config,
            height=15,
            width=18,
            dims=(4, 8),
            layers=(1, 2),
            heads=(1, 2),
            kernels=(7, 3),
            strides=(4, 2),
            paddings=(2, 1),
            expansion=2.0,
            classes=5,
        )
    return replace(
        config,
        height=15,
        width=18,
        stem=(4, 8),
        dims=(8, 16),
        layers=(2, 2),
        convolutions=1,
        head_size=8,
        expansion=2,
        classes=5,
    )


def shrink_hybrid(config: HybridConfig) -> HybridConfig:
    """Keep the number of stages; one block each, and a feature map of 2 x 1 patches."""
    depths = tuple(1 for _ in config.depths)
    patch = min(config.patch, 2)
    unit = patch * 4 * 2 ** max(len(depths) - 1, 0)
    return replace(
        config,
        height=2 * unit,
        width=unit,
        patch=patch,
        depths=depths,
        stem_width=4,
        norm_groups=2,
        dim=8,
        layers=2,
        heads=2,
        ffn_dim=16,
        classes=5,
    )


def shrink_convolutional(config: Convolutional) -> Convolutional:
    """Keep the parts; two stages of two and one blocks, and images that are not square."""
    if isinstance(config, AirbenchConfig):
        return replace(config, height=9, width=13, widths=(4, 6), classes=5)
    if isinstance(config, VggConfig):
        return replace(
            config, height=8, width=12, depths=(1, 2), widths=(4, 6), hidden_size=8, classes=5
        )
    if isinstance(config, ResNetV2Config):
        return ResNetV2Config(
            height=16,
            width=24,
            stem_width=4,
            depths=(2, 1),
            widths=(4, 8),
            outputs=(16, 32),
            norm_groups=2,
            classes=5,
        )
    return replace(
        config,
        height=16,
        width=24,
        stem_width=4,
        depths=(2, 1),
        widths=(4, 8),
        outputs=(4, 8) if config.block == "basic" else (16, 32),
        classes=5,
    )


def shrink_image(config: ImageConfig) -> ImageConfig:
    """Shrink any image model."""
    if isinstance(config, MlpConfig):
        return replace(config, height=4, width=6, hidden_sizes=(8,), classes=5)
    if isinstance(config, DeitConfig):
        return shrink_deit(config)
    if isinstance(config, CctConfig):
        return shrink_cct(config)
    if isinstance(config, Staged):
        return shrink_staged(config)
    if isinstance(config, HybridConfig):
        return shrink_hybrid(config)
    if isinstance(config, Convolutional):
        return shrink_convolutional(config)
    assert isinstance(config, VitConfig)
    return shrink_vit(config)


def shrink_captioner(config: CaptionerConfig) -> CaptionerConfig:
    """Keep the parts; make everything else small, the image as for its own model."""
    image = shrink_image(config.image)
    small = replace(config, vocabulary=11, dim=12, heads=2, ffn_dim=16, max_length=16)
    return replace(small, image=image, decoder_layers=2)


def shrink_matcher(config: MatcherConfig) -> MatcherConfig:
    """Keep the parts; make everything else small, the image as for its own model."""
    image = shrink_image(config.image)
    small = replace(config, vocabulary=11, dim=12, heads=2, ffn_dim=16, max_length=16)
    return replace(small, image=image, layers=2, embedding=6)


def shrink_line_reader(config: LineReaderConfig) -> LineReaderConfig:
    """Keep the parts in two convolutions; make everything else small."""
    return replace(
        config,
        vocabulary=11,
        line_height=8,
        widths=(4, 6),
        row_strides=(2, 2),
        column_strides=(2, 1),
        dim=8,
        layers=2,
        heads=2,
        ffn_dim=16,
        max_length=16,
    )


OTHERS: dict[str, RecurrentTaggerConfig | MlpConfig] = {}

for _name, _config in PRESETS.items():
    if isinstance(_config, CaptionerConfig):
        CAPTIONERS[_name] = shrink_captioner(_config)
    elif isinstance(_config, MatcherConfig):
        MATCHERS[_name] = shrink_matcher(_config)
    elif isinstance(_config, LineReaderConfig):
        LINE_READERS[_name] = shrink_line_reader(_config)
    elif isinstance(_config, RecurrentTaggerConfig):
        OTHERS[_name] = replace(_config, vocabulary=11, dim=6, hidden_size=8)
    elif isinstance(_config, MlpConfig):
        OTHERS[_name] = replace(_config, height=4, width=6, hidden_sizes=(8,), classes=5)
    elif isinstance(_config, TransformerConfig):
        TRANSFORMERS[_name] = shrink_transformer(_config)
    elif isinstance(_config, Seq2SeqConfig):
        SEQ2SEQS[_name] = shrink_seq2seq(_config)
    elif isinstance(_config, Reader):
        READERS[_name] = shrink_reader(_config)
    elif isinstance(_config, DeitConfig):
        DEITS[_name] = shrink_deit(_config)
    elif isinstance(_config, CctConfig):
        CCTS[_name] = shrink_cct(_config)
    elif isinstance(_config, Staged):
        STAGED[_name] = shrink_staged(_config)
    elif isinstance(_config, HybridConfig):
        HYBRIDS[_name] = shrink_hybrid(_config)
    elif isinstance(_config, Convolutional):
        CONVOLUTIONAL[_name] = shrink_convolutional(_config)
    elif isinstance(_config, VitConfig):
        VITS[_name] = shrink_vit(_config)

# Every preset by its name.
ALL: dict[str, ModelConfig] = {
    **TRANSFORMERS,
    **SEQ2SEQS,
    **READERS,
    **CAPTIONERS,
    **MATCHERS,
    **LINE_READERS,
    **VITS,
    **DEITS,
    **CCTS,
    **STAGED,
    **HYBRIDS,
    **CONVOLUTIONAL,
    **OTHERS,
}

# What no preset has selected, but a recipe may.
_base, _vit = TRANSFORMERS["transformer-base"], VITS["vit-b"]
TRANSFORMERS["pre-norm gelu"] = replace(_base, norm="pre", activation="gelu")
TRANSFORMERS["learned positions"] = replace(_base, positions="learned")
TRANSFORMERS["no positions"] = replace(_base, positions="none")
TRANSFORMERS["untied"] = replace(_base, tied=False)
TRANSFORMERS["marian"] = replace(
    _base,
    activation="silu",
    positions="sinusoidal-halves",
    scale_embedding=False,
    output_bias=True,
    pad=10,  # the last, with which a target starts
    start=10,
    end=0,
)
TRANSFORMERS["rotary"] = replace(_base, positions="rotary")
TRANSFORMERS["swiglu"] = replace(_base, activation="swiglu")
_lstm = SEQ2SEQS["seq2seq-lstm-attention"]
SEQ2SEQS["deep encoder"] = replace(_lstm, encoder_layers=3, bidirectional=False)
SEQ2SEQS["deep decoder, additive"] = replace(_lstm, decoder_layers=2, attention="additive")
SEQ2SEQS["dot, fed"] = replace(_lstm, attention="dot", input_feeding=True)
SEQ2SEQS["additive, fed, deep"] = replace(
    _lstm, attention="additive", input_feeding=True, encoder_layers=2, decoder_layers=2
)
SEQ2SEQS["untied"] = replace(_lstm, tied=False)
VITS["post-norm relu"] = replace(_vit, norm="post", activation="relu")  # atlas V5
VITS["mean pool, linear patches"] = replace(_vit, pool="mean", patches="linear")
VITS["patch mean, normed after"] = replace(_vit, pool="patch-mean", pool_norm="after")
VITS["representation"] = replace(_vit, representation=7)
VITS["no positions"] = replace(_vit, positions="none")
VITS["relative positions"] = replace(_vit, positions="relative", pool="distilled")
VITS["2-D sinusoids, attention pool"] = replace(_vit, positions="sinusoidal-2d", pool="attention")
VITS["layer scale"] = replace(_vit, layer_scale=0.1, pool="distilled")
VITS["as CLIP"] = replace(
    _vit, embedding_norm=True, patch_bias=False, activation="quick-gelu", norm_eps=1e-5
)
VITS["as SigLIP"] = replace(_vit, pool="map", activation="gelu-tanh")
VITS["as DINOv2"] = replace(
    _vit, registers=2, layer_scale=0.1, activation="swiglu", pool="class-and-mean"
)
VITS["registers, mean pool, no norm"] = replace(_vit, registers=2, pool="mean", pool_norm="none")
CCTS["class token"] = replace(CCTS["cct-7/3x1"], pool="class", positions="sinusoidal-2d")

_swin, _coatnet = STAGED["swin-t"], STAGED["coatnet-0"]
assert isinstance(_swin, SwinConfig)
assert isinstance(_coatnet, CoatnetConfig)
STAGED["swin as timm pads"] = replace(_swin, edges="timm")
STAGED["swin as torchvision pads"] = replace(_swin, edges="torchvision")
STAGED["coatnet as timm trains"] = replace(
    _coatnet,
    down="max",
    squeeze="early",
    expand="input",
    stride="pool",
    norm_activation=True,
    output_bias=False,
    shortcut_bias=False,
    widen="last",
    layer_scale=0.1,
    representation=6,
)

# Every model of images.
IMAGES: dict[str, ImageModel] = {
    **{f"vit: {name}": c for name, c in VITS.items()},
    **{f"deit: {name}": c for name, c in DEITS.items()},
    **{f"cct: {name}": c for name, c in CCTS.items()},
    **STAGED,
}

# Every model that is made of stacks of blocks.
EVERY: dict[str, Stacked] = {
    **TRANSFORMERS,
    **READERS,
    **CAPTIONERS,
    **MATCHERS,
    **LINE_READERS,
    **IMAGES,
    **{f"vit: {name}": c for name, c in HYBRIDS.items()},
}


def randomise(module: M, seed: int = 0) -> M:
    """Draw every parameter anew: no zero head, no zero bias, no unit norm can hide a mistake.

    Nor the first statistics of a batch norm.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator))
        for part in module.modules():
            if isinstance(part, nn.LayerNorm | nn.GroupNorm | nn.BatchNorm2d):
                part.weight.add_(1.0)
            if isinstance(part, nn.BatchNorm2d):
                assert part.running_mean is not None
                assert part.running_var is not None
                shape = part.running_mean.shape
                part.running_mean.copy_(0.2 * torch.randn(shape, generator=generator))
                part.running_var.copy_(0.5 + torch.rand(shape, generator=generator))
    return module


def inputs(config: ModelConfig, seed: int = 0) -> tuple[Tensor, ...]:
    """Two examples to call the model with; the second sentence is padded."""
    generator = torch.Generator().manual_seed(seed)
    if isinstance(config, Images):
        return (torch.randn(2, config.channels, config.height, config.width, generator=generator),)
    if isinstance(config, LineReaderConfig):
        return (torch.randn(2, 1, config.line_height, 12, generator=generator),)
    if isinstance(config, Both):
        images = inputs(config.image, seed)
        target = torch.randint(3, config.vocabulary, (2, 4), generator=generator)
        target[1, 3:] = config.pad
        if isinstance(config, CaptionerConfig):
            target[:, 0] = config.start
        return (*images, target)
    assert isinstance(
        config, TransformerConfig | Seq2SeqConfig | LanguageModelConfig | TaggerConfig
    )
    source = torch.randint(3, config.vocabulary, (2, 5), generator=generator)
    source[1, 3:] = config.pad
    if not isinstance(config, TransformerConfig | Seq2SeqConfig):
        return (source,)
    target = torch.randint(3, config.vocabulary, (2, 4), generator=generator)
    target[:, 0] = config.start
    return source, target


def answer(model: nn.Module, given: Sequence[Tensor]) -> Tensor:
    """What a model answers, as one tensor: a matcher the score of every pair."""
    found = model(*given)
    if isinstance(model, Matcher):
        return model.scores(*found)
    out: Tensor = torch.stack(found) if isinstance(found, tuple) else found  # a DeiT in training
    return out
