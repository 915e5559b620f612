"""The masked-token language model: Devlin et al. 2019 (BERT). An encoder alone (T20).

Without segments and next-sentence prediction, which Liu et al. 2019 (RoBERTa) found unnecessary.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.models.language_model import LanguageModel, LanguageModelConfig
from manyheads.models.parts import Norm
from manyheads.nn.masks import padding_mask
from manyheads.nn.readout import Readout, logits


@dataclass(frozen=True, kw_only=True)
class MaskedConfig(LanguageModelConfig):
    """Shape and parts; the defaults are BERT's base model (Devlin et al. 2019, section 3)."""

    vocabulary: int = 30522
    norm: Norm = "post"
    mask: int = 3  # stands where a token is hidden


class MaskedLanguageModel(LanguageModel):
    """Token ids in, some of them hidden; logits of what each is out."""

    def __init__(self, config: MaskedConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        scored: Bool[Tensor, "batch token"] | None = None,
        readout: Readout = logits,
    ) -> Float[Tensor, "..."]:
        """Score what each token is, from both sides of it.

        Args:
            tokens: token ids, padded.
            scored: positions to score, usually the hidden ones; all if None.
            readout: what to make of the vectors there and the output layer.

        Returns:
            Logits (batch, token, vocabulary), or (scored positions, vocabulary); else whatever
            readout returns.
        """
        x = self.encoder(self.embed(tokens), padding_mask(tokens, self.config.pad))
        return readout(self.output, x if scored is None else x[scored])
