"""The next-token language model: Radford et al. 2018 and 2019 (GPT, GPT-2).

A decoder without a source to attend to is the encoder stack under the causal mask (T20).
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.language_model import LanguageModel, LanguageModelConfig
from manyheads.nn.cache import KeyValueCache, rows_of_beams, rows_of_sentences
from manyheads.nn.masks import causal_mask
from manyheads.nn.readout import Readout, logits


@dataclass(frozen=True, kw_only=True)
class CausalConfig(LanguageModelConfig):
    """Shape and parts; the defaults are GPT-2's smallest model (Radford et al. 2019, table 2)."""

    vocabulary: int = 50257
    max_length: int = 1024


@dataclass(frozen=True)
class CausalState:
    """All that generation carries from step to step; rows of a cache are sentence x beam."""

    caches: list[KeyValueCache]
    beams: int
    # Log-probabilities (row, vocabulary) of what follows the prompt, until a step hands them out.
    ready: Tensor | None


class CausalLanguageModel(LanguageModel):
    """Token ids in, logits of each next token out; continues prompts through the Step protocol."""

    def __init__(self, config: CausalConfig) -> None:
        super().__init__(config)
        self.config = config

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        scored: Bool[Tensor, "batch token"] | None = None,
        readout: Readout = logits,
    ) -> Float[Tensor, "..."]:
        """Score every next token of a text that begins with the start token.

        Padding stands behind a text, where the causal mask hides it.

        Args:
            tokens: token ids, padded.
            scored: positions to score, all if None.
            readout: what to make of the vectors there and the output layer.

        Returns:
            Logits (batch, token, vocabulary), or (scored positions, vocabulary); else whatever
            readout returns.
        """
        mask = causal_mask(tokens.shape[1], tokens.device)
        x = self.encoder(self.embed(tokens), mask)
        return readout(self.output, x if scored is None else x[scored])

    def start(
        self, source: Int[Tensor, "sentence source"], beams: int, max_length: int
    ) -> CausalState:
        """Read prompts, the start token in front, and make room for max_length more tokens a beam.

        Raises:
            UsageError: the prompts differ in length, so that some are padded.
        """
        config = self.config
        if (source == config.pad).any():
            raise UsageError(
                "Prompts that are continued together must have the same number of tokens: "
                "their next tokens stand at the same place. Continue the others in other batches."
            )
        rows, length = source.shape
        like = self.embedding.weight
        caches = [
            KeyValueCache.empty(
                rows, config.heads, length + max_length, config.dim // config.heads, like
            )
            for _ in self.encoder.blocks
        ]
        x, caches = self.encoder.read(self.embed(source), caches)
        ready = F.log_softmax(self.output(x[:, -1]).float(), dim=-1)
        each = torch.arange(rows, device=source.device).repeat_interleave(beams)
        return CausalState([cache.select(each) for cache in caches], beams, ready[each])

    def step(
        self, tokens: Int[Tensor, "sentence beam"], state: CausalState
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], CausalState]:
        """Feed one token a beam; return log-probabilities of the next, and the new state.

        The first step answers for the prompt. The start token that a search feeds there stands
        in front of the prompt and has been read with it.
        """
        if state.ready is not None:
            return state.ready.view(*tokens.shape, -1), replace(state, ready=None)
        x = self.embed(tokens.flatten()[:, None], first=state.caches[0].length)
        x, caches = self.encoder.step(x.view(*tokens.shape, -1), state.caches)
        return F.log_softmax(self.output(x).float(), dim=-1), replace(state, caches=caches)

    def reorder(self, state: CausalState, beams: Int[Tensor, "sentence beam"]) -> CausalState:
        """Let beam b of a sentence go on from its beam `beams[sentence, b]`."""
        return _select(state, rows_of_beams(beams))

    def keep(self, state: CausalState, sentences: Int[Tensor, " kept"]) -> CausalState:
        """Drop all sentences but these, with their beams."""
        return _select(state, rows_of_sentences(sentences, state.beams))


def _select(state: CausalState, rows: Int[Tensor, " kept"]) -> CausalState:
    ready = None if state.ready is None else state.ready[rows]
    return CausalState([cache.select(rows) for cache in state.caches], state.beams, ready)
