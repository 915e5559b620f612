"""Models: one file each, with a frozen Config, the Module it builds, and the paper."""

from typing import TYPE_CHECKING

from manyheads.lazy import lazy

if TYPE_CHECKING:
    from manyheads.models.captioner import Captioner, CaptionerConfig
    from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
    from manyheads.models.cct import Cct, CctConfig
    from manyheads.models.coatnet import Coatnet, CoatnetConfig
    from manyheads.models.config import ModelConfig
    from manyheads.models.cvt import Cvt, CvtConfig
    from manyheads.models.deit import Deit, DeitConfig
    from manyheads.models.hybrid import Hybrid, HybridConfig
    from manyheads.models.line_reader import LineReader, LineReaderConfig
    from manyheads.models.masked_lm import MaskedConfig, MaskedLanguageModel
    from manyheads.models.matcher import Matcher, MatcherConfig
    from manyheads.models.mlp import Mlp, MlpConfig
    from manyheads.models.presets import PRESETS, build, preset, register_preset
    from manyheads.models.resnet import ResNet, ResNetConfig
    from manyheads.models.resnet_v2 import ResNetV2, ResNetV2Config
    from manyheads.models.seq2seq import Seq2Seq, Seq2SeqConfig
    from manyheads.models.swin import Swin, SwinConfig
    from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig, Tagger
    from manyheads.models.transformer import Transformer, TransformerConfig
    from manyheads.models.vgg import Vgg, VggConfig
    from manyheads.models.vit import Vit, VitConfig

__all__ = ["PRESETS", "Captioner", "CaptionerConfig", "CausalConfig", "CausalLanguageModel"]
__all__ += ["Cct", "CctConfig", "Coatnet", "CoatnetConfig", "Cvt", "CvtConfig", "Deit"]
__all__ += ["DeitConfig", "EncoderTaggerConfig", "Hybrid", "HybridConfig", "LineReader"]
__all__ += ["LineReaderConfig", "MaskedConfig", "MaskedLanguageModel", "Matcher"]
__all__ += ["MatcherConfig", "Mlp", "MlpConfig", "ModelConfig", "RecurrentTaggerConfig"]
__all__ += ["ResNet", "ResNetConfig", "ResNetV2", "ResNetV2Config", "Seq2Seq", "Seq2SeqConfig"]
__all__ += ["Swin", "SwinConfig", "Tagger", "Transformer", "TransformerConfig", "Vgg"]
__all__ += ["VggConfig", "Vit", "VitConfig", "build", "preset", "register_preset"]

__getattr__ = lazy(__name__, __file__)
