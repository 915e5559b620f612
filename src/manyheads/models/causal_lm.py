"""The next-token language model: Radford et al. 2018 and 2019 (GPT, GPT-2).

A decoder without a source to attend to is the encoder stack under the causal mask (T20).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.exported_graphs import (
    ROWS,
    Graph,
    GraphCache,
    GraphInput,
    layer_inputs,
    layer_names,
    pairs,
    tokens_input,
)
from manyheads.models.language_model import LanguageModel, LanguageModelConfig
from manyheads.nn.layers.cache import KeyValueCache, rows_of_beams, rows_of_sentences
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.shapes import Kept, Mask, PerBeam, Scores, SourceIds, TokenIds, Tokens


@dataclass(frozen=True, kw_only=True)
class CausalConfig(LanguageModelConfig):
    """Shape and parts; the defaults are GPT-2's smallest model (Radford et al. 2019, table 2)."""

    tasks = ("generate",)

    vocabulary: int = 50257
    max_length: int = 1024

    def graphs(self, model: Any) -> Sequence[Graph]:
        """One graph, from ids behind a past to logits and the grown past.

        `positions` says which of the given tokens are scored: a search needs the last one only.
        """
        positions = GraphInput("positions", torch.arange(3), {0: "positions"})
        shape = (ROWS, self.heads, 4, self.dim // self.heads)
        past = layer_inputs(self.layers, "past_", shape, {0: "texts", 2: "past"})
        return (
            Graph(
                "decoder",
                ContinueGraph(model),
                (tokens_input(), positions, *past),
                ("logits", *layer_names(self.layers)),
                limits={"tokens": self.max_length, "past": self.max_length - 1},
                empty=("past",),
                listed=2,
            ),
        )

    def build(self) -> "CausalLanguageModel":
        """Build the model with fresh weights."""
        return CausalLanguageModel(self)


@dataclass(frozen=True)
class CausalState:
    """State of generation between steps; rows of a cache are sentence x beam."""

    caches: list[KeyValueCache]
    beams: int
    # Log-probabilities (row, vocabulary) of the first token after the prompt, until the first step.
    ready: Tensor | None


class CausalLanguageModel(LanguageModel):
    """Token ids in, logits of each next token out; continues prompts through the Step protocol."""

    config: CausalConfig
    forward_methods: ClassVar[tuple[str, ...]] = ("start", "step")

    def mask(self, tokens: TokenIds) -> Mask:
        """Let a token see earlier ones; padding follows a text, where it is hidden too."""
        return causal_mask(tokens.shape[1], tokens.device)

    def start(self, source: SourceIds, beams: int, max_length: int) -> CausalState:
        """Read prompts, the start token in front, and make room for max_length more tokens a beam.

        Raises:
            UsageError: the prompts differ in length, so that some are padded.
        """
        config = self.config
        check_prompts(source, config.pad)
        rows, length = source.shape
        shape = (rows, config.heads, length + max_length, config.dim // config.heads)
        like = self.embedding.weight
        caches = [KeyValueCache.empty(*shape, like) for _ in self.encoder.blocks]
        x, caches = self.extend(source, caches)
        ready = F.log_softmax(self.output(x[:, -1]).float(), dim=-1)
        each = torch.arange(rows, device=source.device).repeat_interleave(beams)
        return CausalState([cache.select(each) for cache in caches], beams, ready[each])

    def extend(
        self, tokens: TokenIds, caches: Sequence[KeyValueCache]
    ) -> tuple[Tokens, list[KeyValueCache]]:
        """Read tokens behind those of the caches; return their vectors, and the grown caches."""
        return self.encoder.prefill(self.embed(tokens, first=caches[0].length), caches)

    def step(self, tokens: PerBeam, state: CausalState) -> tuple[Scores, CausalState]:
        """Feed one token a beam; return log-probabilities of the next, and the new state.

        The first step returns the scores computed with the prompt: the start token that a search
        feeds there is already the prompt's first token.
        """
        if state.ready is not None:
            return state.ready.view(*tokens.shape, -1), replace(state, ready=None)
        x = self.embed(tokens.flatten()[:, None], first=state.caches[0].length)
        x, caches = self.encoder.step(x.view(*tokens.shape, -1), state.caches)
        return F.log_softmax(self.output(x).float(), dim=-1), replace(state, caches=caches)

    def reorder(self, state: CausalState, beams: PerBeam) -> CausalState:
        """Let beam b of a sentence go on from its beam `beams[sentence, b]`."""
        return _select(state, rows_of_beams(beams))

    def keep(self, state: CausalState, sentences: Kept) -> CausalState:
        """Drop all sentences but these, with their beams."""
        return _select(state, rows_of_sentences(sentences, state.beams))


def check_prompts(source: SourceIds, pad: int) -> None:
    """Refuse prompts that differ in length.

    Raises:
        UsageError: some are padded.
    """
    if (source == pad).any():
        raise UsageError(
            "Prompts in one batch must have the same number of tokens, because "
            "they share the position of the next token. Put other lengths in other batches."
        )


class ContinueGraph(nn.Module):
    """Logits of the next tokens behind a past, and the grown past."""

    def __init__(self, model: CausalLanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        tokens: Int[Tensor, "text token"],
        positions: Int[Tensor, " scored"],
        past: list[Float[Tensor, "text head past size"]],
    ) -> tuple[Float[Tensor, "text ..."], ...]:
        """Read tokens; score what follows those at `positions`, counted from the first of them.

        Returns:
            Logits (text, scored, vocabulary), then keys and values of past and tokens together
            (text, head, token, size), layer by layer.
        """
        caches = [GraphCache(k, v, k.shape[2]) for k, v in pairs(past)]
        x, grown = self.model.extend(tokens, caches)
        found = [each for cache in grown for each in (cache.key_storage, cache.value_storage)]
        return self.model.output(x[:, positions]), *found


def _select(state: CausalState, rows: Kept) -> CausalState:
    ready = None if state.ready is None else state.ready[rows]
    return CausalState([cache.select(rows) for cache in state.caches], state.beams, ready)
