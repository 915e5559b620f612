"""The masked-token language model: Devlin et al. 2019 (BERT). An encoder alone (T20).

Without segments and next-sentence prediction, which Liu et al. 2019 (RoBERTa) found unnecessary.
"""

from dataclasses import dataclass

from manyheads.models.components import Norm
from manyheads.models.language_model import LanguageModel, LanguageModelConfig
from manyheads.nn.layers.masks import padding_mask
from manyheads.nn.shapes import Mask, TokenIds


@dataclass(frozen=True, kw_only=True)
class MaskedConfig(LanguageModelConfig):
    """Shape and parts; the defaults are BERT's base model (Devlin et al. 2019, section 3)."""

    tasks = ("fill",)

    vocabulary: int = 30522
    norm: Norm = "post"
    mask: int = 3  # id of the token that replaces hidden ones

    def build(self) -> "MaskedLanguageModel":
        """Build the model with fresh weights."""
        return MaskedLanguageModel(self)


class MaskedLanguageModel(LanguageModel):
    """Token ids in, some of them hidden; logits over the vocabulary for each position out."""

    config: MaskedConfig

    def mask(self, tokens: TokenIds) -> Mask:
        """Let every token see both sides of it."""
        return padding_mask(tokens, self.config.pad)
