"""Public names, for type checkers and editors; programs import each when it is used."""

from manyheads.models.airbench import Airbench, AirbenchConfig
from manyheads.models.captioner import Captioner, CaptionerConfig
from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
from manyheads.models.cct import Cct, CctConfig
from manyheads.models.coatnet import Coatnet, CoatnetConfig
from manyheads.models.cvt import Cvt, CvtConfig
from manyheads.models.deit import Deit, DeitConfig
from manyheads.models.hybrid import Hybrid, HybridConfig
from manyheads.models.line_reader import LineReader, LineReaderConfig
from manyheads.models.masked_lm import MaskedConfig, MaskedLanguageModel
from manyheads.models.matcher import Matcher, MatcherConfig
from manyheads.models.mlp import Mlp, MlpConfig
from manyheads.models.model_config import ImageConfig, ModelConfig
from manyheads.models.presets import PRESETS, build, preset, register_preset
from manyheads.models.resnet import ResNet, ResNetConfig
from manyheads.models.resnet_v2 import ResNetV2, ResNetV2Config
from manyheads.models.seq2seq import Seq2Seq, Seq2SeqConfig
from manyheads.models.swin import Swin, SwinConfig
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig, Tagger
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vgg import Vgg, VggConfig
from manyheads.models.vit import Vit, VitConfig

__all__ = ["PRESETS", "Airbench", "AirbenchConfig", "Captioner", "CaptionerConfig", "CausalConfig"]
__all__ += ["CausalLanguageModel", "Cct", "CctConfig", "Coatnet", "CoatnetConfig", "Cvt"]
__all__ += ["CvtConfig", "Deit", "DeitConfig", "EncoderTaggerConfig", "Hybrid", "HybridConfig"]
__all__ += ["ImageConfig", "LineReader", "LineReaderConfig", "MaskedConfig", "MaskedLanguageModel"]
__all__ += ["Matcher", "MatcherConfig", "Mlp", "MlpConfig", "ModelConfig", "RecurrentTaggerConfig"]
__all__ += ["ResNet", "ResNetConfig", "ResNetV2", "ResNetV2Config", "Seq2Seq", "Seq2SeqConfig"]
__all__ += ["Swin", "SwinConfig", "Tagger", "Transformer", "TransformerConfig", "Vgg", "VggConfig"]
__all__ += ["Vit", "VitConfig", "build", "preset", "register_preset"]
