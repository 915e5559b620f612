"""From a Config to its model."""

from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
from manyheads.models.cct import Cct, CctConfig
from manyheads.models.coatnet import Coatnet, CoatnetConfig
from manyheads.models.cvt import Cvt, CvtConfig
from manyheads.models.deit import Deit, DeitConfig
from manyheads.models.hybrid import Hybrid, HybridConfig
from manyheads.models.masked_lm import MaskedConfig, MaskedLanguageModel
from manyheads.models.mlp import Mlp, MlpConfig
from manyheads.models.presets import Config
from manyheads.models.resnet import ResNet, ResNetConfig
from manyheads.models.resnet_v2 import ResNetV2, ResNetV2Config
from manyheads.models.seq2seq import Seq2Seq, Seq2SeqConfig
from manyheads.models.swin import Swin, SwinConfig
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig, Tagger
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vgg import Vgg, VggConfig
from manyheads.models.vit import Vit

# Of images; a Hybrid is a Vit.
Classifier = Vit | Deit | Cct | Swin | Cvt | Coatnet | Mlp | Vgg | ResNet | ResNetV2
Model = Transformer | Seq2Seq | Classifier | CausalLanguageModel | MaskedLanguageModel | Tagger


def build(config: Config) -> Model:
    """Build the model that a Config describes, with fresh weights from torch's generator."""
    if isinstance(config, TransformerConfig):
        return Transformer(config)
    if isinstance(config, Seq2SeqConfig):
        return Seq2Seq(config)
    if isinstance(config, CausalConfig):
        return CausalLanguageModel(config)
    if isinstance(config, MaskedConfig):
        return MaskedLanguageModel(config)
    if isinstance(config, RecurrentTaggerConfig | EncoderTaggerConfig):
        return Tagger(config)
    if isinstance(config, CctConfig):
        return Cct(config)
    if isinstance(config, SwinConfig):
        return Swin(config)
    if isinstance(config, CvtConfig):
        return Cvt(config)
    if isinstance(config, CoatnetConfig):
        return Coatnet(config)
    if isinstance(config, DeitConfig):
        return Deit(config)
    if isinstance(config, MlpConfig):
        return Mlp(config)
    if isinstance(config, VggConfig):
        return Vgg(config)
    if isinstance(config, ResNetConfig):
        return ResNet(config)
    if isinstance(config, ResNetV2Config):
        return ResNetV2(config)
    if isinstance(config, HybridConfig):  # before its own kind
        return Hybrid(config)
    return Vit(config)
