"""Models: one file each, with a frozen Config, the Module it builds, and the paper."""

from manyheads.lazy import lazy

HOMES = {
    "models.airbench": "Airbench AirbenchConfig",
    "models.captioner": "Captioner CaptionerConfig",
    "models.causal_lm": "CausalConfig CausalLanguageModel",
    "models.cct": "Cct CctConfig",
    "models.coatnet": "Coatnet CoatnetConfig",
    "models.cvt": "Cvt CvtConfig",
    "models.deit": "Deit DeitConfig",
    "models.hybrid": "Hybrid HybridConfig",
    "models.line_reader": "LineReader LineReaderConfig",
    "models.masked_lm": "MaskedConfig MaskedLanguageModel",
    "models.matcher": "Matcher MatcherConfig",
    "models.mlp": "Mlp MlpConfig",
    "models.model_config": "ImageConfig ModelConfig",
    "models.presets": "PRESETS build preset register_preset",
    "models.resnet": "ResNet ResNetConfig",
    "models.resnet_v2": "ResNetV2 ResNetV2Config",
    "models.seq2seq": "Seq2Seq Seq2SeqConfig",
    "models.swin": "Swin SwinConfig",
    "models.tagger": "EncoderTaggerConfig RecurrentTaggerConfig Tagger",
    "models.transformer": "Transformer TransformerConfig",
    "models.vgg": "Vgg VggConfig",
    "models.vit": "Vit VitConfig",
}
__all__, __getattr__, __dir__ = lazy(__name__, HOMES)
