"""The recurrent encoder-decoder, with attention or without: what the Transformer came after.

Sutskever et al. 2014 and Cho et al. 2014: the source becomes one vector, from which the target is
unrolled (atlas T3). Bahdanau et al. 2015 and Luong et al. 2015: the decoder attends to the
source at every step (atlas T4). Attention follows the decoder's state, as in Luong's model,
for every score: so a whole target can be computed at once.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.model_config import ModelConfig
from manyheads.nn.attention.recurrent_attention import (
    SCORES,
    GlobalAttention,
    NoAttention,
    ScoreName,
    Source,
)
from manyheads.nn.editing.seam import at_step
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.masks import padding_mask
from manyheads.nn.layers.output_head import OutputFn, logits, output_layer
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.rnn import CELLS, CellName, Recurrent, RecurrentStack, State
from manyheads.nn.shapes import (
    BeamVectors,
    Kept,
    PerBeam,
    Scores,
    SourceIds,
    SourceWeights,
    TokenIds,
    Tokens,
    check_ids,
)


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(ModelConfig):
    """Shape and parts of a recurrent encoder-decoder."""

    tasks = ("translate",)

    vocabulary: int = 37000
    target_vocabulary: int | None = None  # a vocabulary of the target's own; None: one for both
    dim: int = 512  # of an embedding
    hidden_size: int = 512  # of a state; each direction of a bidirectional encoder has half of it
    cell: CellName = "lstm"
    encoder_layers: int = 1
    decoder_layers: int = 1
    bidirectional: bool = True
    attention: ScoreName = "additive"
    input_feeding: bool = False  # a step reads what the last one saw; so steps cannot be parallel
    dropout: float = 0.1
    # One matrix for both embeddings and the output layer; with a vocabulary of the target's own,
    # one for its embedding and the output layer.
    tied: bool = True
    pad: int = 0
    start: int = 1
    end: int = 2

    def __post_init__(self) -> None:
        if self.bidirectional and self.hidden_size % 2:
            raise UsageError(
                f"hidden_size is {self.hidden_size}, but each direction of a bidirectional encoder "
                "has half of it: choose an even number, or bidirectional = false."
            )
        if self.input_feeding and self.attention == "none":
            raise UsageError(
                "input_feeding feeds what attention saw to the next step, but attention is "
                '"none": choose "additive", "dot" or "general", or input_feeding = false.'
            )

    def build(self) -> "Seq2Seq":
        """Build the model with fresh weights."""
        return Seq2Seq(self)


@dataclass(frozen=True)
class Memory:
    """State of decoding between steps; the first dimension of every tensor is the sentence."""

    source: Source
    states: list[State]  # of each layer, (sentence, beam, hidden)
    seen: Tensor  # (sentence, beam, dim): the attentional vector of the last step


class Seq2Seq(nn.Module):
    """Token ids in, logits over the vocabulary out; decodes through the Step protocol."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        pad, targets = config.pad, config.target_vocabulary or config.vocabulary
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=pad)
        self.target_embedding = self.embedding
        if not config.tied or config.target_vocabulary is not None:
            self.target_embedding = nn.Embedding(targets, config.dim, padding_idx=pad)
        self.output = output_layer(self.target_embedding, tied=config.tied)
        self.dropout = Dropout(config.dropout)
        layers = _layers(config, config.encoder_layers, config.dim, config.bidirectional)
        self.encoder = RecurrentStack("encoder", layers, dropout=config.dropout)
        self.decoder = FedDecoder(config) if config.input_feeding else StateDecoder(config)
        for module in self.modules():
            if isinstance(module, Recurrent):
                module.reset_parameters()
        initial.xavier(self)
        initial.embeddings(self)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        scored: Bool[Tensor, "batch target"] | None = None,
        readout: OutputFn = logits,
    ) -> Float[Tensor, "..."]:
        """Score every next token of a target; arguments and result are those of `Transformer`."""
        memory, states = self.encode(source)
        given = self.decoder.attention.project(memory, padding_mask(source, self.config.pad))
        x = self.dropout(self._embed(self.target_embedding, target))
        x = self.dropout(self.decoder(x, self._initial(states), given))
        return readout(self.output, x if scored is None else x[scored])

    def encode(
        self, source: Int[Tensor, "batch source"]
    ) -> tuple[Float[Tensor, "batch source hidden"], list[State]]:
        """Return the top layer's states at every source token, and each layer's last state."""
        x = self.dropout(self._embed(self.embedding, source))
        return self.encoder(x, lengths=(source != self.config.pad).sum(dim=1))

    def start(self, source: SourceIds, beams: int, max_length: int) -> Memory:
        """Encode the sentences once; every beam begins with the same state."""
        memory, last = self.encode(source)
        states = [
            tuple(each[:, None].expand(-1, beams, -1) for each in state)
            for state in self._initial(last)
        ]
        given = self.decoder.attention.project(memory, padding_mask(source, self.config.pad))
        return Memory(given, states, memory.new_zeros(len(source), beams, self.config.dim))

    def step(self, tokens: PerBeam, state: Memory) -> tuple[Scores, Memory]:
        """Feed one token a beam; return log-probabilities of the next, and the new state."""
        log_probabilities, after, _ = self.step_with_attention(tokens, state)
        return log_probabilities, after

    def step_with_attention(
        self, tokens: PerBeam, state: Memory
    ) -> tuple[Scores, Memory, SourceWeights | None]:
        """Step, and return the attention over the source too; None where the model has none."""
        x = self.dropout(self._embed(self.target_embedding, tokens))
        seen, states, weights = self.decoder.step(x, state.seen, state.states, state.source)
        scores = F.log_softmax(self.output(self.dropout(seen)).float(), dim=-1)
        return scores, replace(state, states=states, seen=seen), weights

    def reorder(self, state: Memory, beams: PerBeam) -> Memory:
        """Let beam b of a sentence go on from its beam `beams[sentence, b]`."""
        sentence = torch.arange(len(beams), device=beams.device)[:, None]
        states = [tuple(each[sentence, beams] for each in layer) for layer in state.states]
        return Memory(state.source, states, state.seen[sentence, beams])

    def keep(self, state: Memory, sentences: Kept) -> Memory:
        """Drop all sentences but these, with their beams."""
        states = [tuple(each[sentences] for each in layer) for layer in state.states]
        return Memory(state.source.select(sentences), states, state.seen[sentences])

    def _embed(self, embedding: nn.Embedding, tokens: TokenIds) -> Tokens:
        check_ids(tokens)
        # As in a Transformer: tokens enter with unit variance, while the output layer, which is
        # the same matrix, begins with small logits. Unscaled, they hardly move the gates.
        return embedding(tokens) * math.sqrt(self.config.dim)

    def _initial(self, last: list[State]) -> list[State]:
        """Begin each decoder layer with the last state of an encoder layer, the top with the top.

        Nothing is learned in between: the states are equally wide (Sutskever et al. 2014).
        """
        missing = self.config.decoder_layers - len(last)
        return [last[0]] * missing + last[max(-missing, 0) :]


class StateDecoder(nn.Module):
    """The whole target in one call of the kernel, then attention for all of its states at once."""

    inputs = 1  # vectors that a step reads

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        layers = _layers(config, config.decoder_layers, self.inputs * config.dim)
        self.stack = RecurrentStack("decoder", layers, dropout=config.dropout)
        self.attention = _attention(config)

    def forward(self, x: Tokens, states: list[State], source: Source) -> Tokens:
        """Read a whole target; return its attentional vectors."""
        hidden, _ = self.stack(x, states)
        return self.attention(hidden, source)[0]

    def step(
        self, x: BeamVectors, seen: BeamVectors, states: list[State], source: Source
    ) -> tuple[BeamVectors, list[State], Tensor | None]:
        """Read one token a beam; return its attentional vector, the new states and the weights."""
        # Every beam is a row of the stack's own step.
        rows = [tuple(each.flatten(0, 1) for each in state) for state in states]
        hidden, rows = self.stack.step(self.reads(x, seen).flatten(0, 1), rows)
        shape = x.shape[:2]
        states = [tuple(each.unflatten(0, shape) for each in state) for state in rows]
        vector, weights = self.attention(hidden.unflatten(0, shape), source)
        return vector, states, weights

    def reads(self, x: Tensor, seen: Tensor) -> Tensor:
        """Give what a step reads: the token."""
        return x


class FedDecoder(StateDecoder):
    """Input feeding: a step also reads the attentional vector of the last (Luong et al. 2015, 3.3).

    So the decoder sees its earlier attention, and a target must be read token by token.
    """

    inputs = 2
    attention: GlobalAttention

    def forward(self, x: Tokens, states: list[State], source: Source) -> Tokens:
        """Read a target step by step; return its attentional vectors."""
        seen, vectors = torch.zeros_like(x[:, 0]), []
        scores, contexts = [], []
        for position, token in enumerate(x.unbind(dim=1)):
            at_step(position)
            hidden, states = self.stack.step(self.reads(token, seen), states)
            scores.append(self.attention.scores(hidden[:, None], source))
            weights = self.attention.weights(scores[-1], source)
            contexts.append(self.attention.mix(weights, source))
            seen = self.attention.join(contexts[-1], hidden[:, None])[:, 0]
            vectors.append(seen)
        # One record for the whole target, as other attentions have.
        self.attention.record(torch.cat(scores, dim=2), contexts, source)
        return torch.stack(vectors, dim=1)

    def reads(self, x: Tensor, seen: Tensor) -> Tensor:
        """Give what a step reads: the token, and what the last step saw."""
        return torch.cat((x, seen), dim=-1)


def _layers(
    config: Seq2SeqConfig, count: int, size: int, bidirectional: bool = False
) -> list[Recurrent]:
    cell, hidden = CELLS[config.cell], config.hidden_size
    return [
        Recurrent(cell, hidden if number else size, hidden, bidirectional=bidirectional)
        for number in range(count)
    ]


def _attention(config: Seq2SeqConfig) -> GlobalAttention | NoAttention:
    if config.attention == "none":
        return NoAttention(config.hidden_size, config.dim)
    score = SCORES[config.attention](config.hidden_size)
    attention = GlobalAttention(score, config.hidden_size, config.dim)
    attention.layer_id = LayerId("decoder", config.decoder_layers - 1, "cross")
    return attention
