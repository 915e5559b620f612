"""Models whose graphs run in sessions of another runtime, called like their torch modules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.engines.engine import EngineModel
from manyheads.engines.onnx.graph_files import GraphFile
from manyheads.errors import UsageError
from manyheads.models.causal_lm import check_prompts
from manyheads.nn.layers.cache import rows_of_beams, rows_of_sentences

# Runs a graph on inputs in its order; answers with its outputs in their order.
Session = Callable[[Sequence[Tensor]], list[Tensor]]


class GraphModel(EngineModel):
    """The base: sessions by the name of their graph, and the torch module where it is needed."""

    def __init__(
        self,
        config: Any,
        files: Mapping[str, GraphFile],
        sessions: Mapping[str, Session],
        torch_model: Callable[[], nn.Module],
    ) -> None:
        super().__init__(config)
        self.files = files
        self.sessions = sessions
        self.reference = torch_model  # for what a graph does not tell, such as alignment

    def run(self, name: str, *inputs: Tensor, lengths: Mapping[str, int] = {}) -> list[Tensor]:
        """Run a graph.

        Args:
            name: of the graph.
            inputs: in its order.
            lengths: of its open axes that have limits.

        Raises:
            UsageError: a length is beyond the limit.
        """
        for axis, length in lengths.items():
            limit = self.files[name].limits.get(axis)
            if limit is not None and length > limit:
                raise UsageError(
                    f"The input has {length} on the axis {axis!r}, and the exported graph ends at "
                    f"{limit}. Give shorter inputs, or use engine='torch'."
                )
        return self.sessions[name](inputs)


class OneGraph(GraphModel):
    """A classifier, an image encoder, a line reader, a masked language model: one graph."""

    def forward(
        self, given: Tensor, scored: Tensor | None = None, *others: Any, **parameters: Any
    ) -> Tensor:
        """Run it on images or ids; of ids, return the logits of the tokens that are `scored`."""
        if others or parameters:
            super().forward()
        axis = "tokens" if given.ndim == 2 else "width"
        found = self.run("model", given, lengths={axis: given.shape[-1]})[0]
        return found if scored is None else found[scored]

    def features(self, images: Tensor) -> Tensor:
        """Refuse: the graph gives the vector of an image, and not those of its tokens."""
        return super().forward()


class Towers(GraphModel):
    """The two sides of a matcher."""

    def encode_images(self, images: Tensor) -> Tensor:
        """Return the unit vectors of images."""
        return self.run("images", images)[0]

    def encode_texts(self, tokens: Tensor) -> Tensor:
        """Return the unit vectors of texts."""
        return self.run("texts", tokens, lengths={"tokens": tokens.shape[1]})[0]

    def scores(self, images: Tensor, texts: Tensor) -> Tensor:
        """Score every pair, as the torch module does: two numbers of it are no graph."""
        reference: Any = self.reference()
        return reference.scores(images, texts)


@dataclass(frozen=True)
class SessionState:
    """State of decoding between steps: tensors of the graphs."""

    source: list[Tensor]  # what is padding, then keys and values of each layer
    past: list[Tensor]  # keys and values (sentence, beam, head, token, size) of each layer


class StepModel(GraphModel):
    """A translator or captioner: the Step protocol over an encoder and a step of the decoder."""

    def encode(self, source: Tensor) -> Tensor:
        """Return what the first layer of the decoder compares with: (sentence, part, dim)."""
        return self._read(source)[1].transpose(1, 2).flatten(2)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Score every next token of a target, token by token: log-probabilities."""
        state = self.start(source, 1, target.shape[1])
        found = []
        for token in target.unbind(dim=1):
            scores, state = self.step(token[:, None], state)
            found.append(scores)
        return torch.cat(found, dim=1)

    def start(self, source: Tensor, beams: int, max_length: int) -> SessionState:
        """Encode the sources; nothing is written yet.

        Raises:
            UsageError: outputs may be longer than the exported graph allows.
        """
        limit = self.files["decoder"].limits.get("past")
        if limit is not None and max_length > limit + 1:
            raise UsageError(
                f"An output may have {max_length:,} tokens here (decode.max_length, or a prefix), "
                f"but the exported graph ends at {limit + 1:,}: shorten it, or load the model with "
                "`engine='torch'`."
            )
        read = self._read(source)
        sentences, heads, _, size = read[1].shape
        empty = torch.empty(sentences, beams, heads, 0, size)
        return SessionState(read, [empty] * (len(read) - 1))

    def step(self, tokens: Tensor, state: SessionState) -> tuple[Tensor, SessionState]:
        """Feed one token a beam; return log-probabilities of the next, and the new state."""
        scores, after, _ = self.step_with_attention(tokens, state)
        return scores, after

    def step_with_attention(
        self, tokens: Tensor, state: SessionState
    ) -> tuple[Tensor, SessionState, Tensor]:
        """Step, and return the attention over the source too."""
        past = state.past[0].shape[3]
        scores, attention, *grown = self.run(
            "decoder", tokens, *state.source, *state.past, lengths={"past": past}
        )
        return scores, replace(state, past=grown), attention

    def reorder(self, state: SessionState, beams: Tensor) -> SessionState:
        """Let beam b of a sentence go on from its beam `beams[sentence, b]`."""
        rows = rows_of_beams(beams)
        past = [each.flatten(0, 1)[rows].unflatten(0, beams.shape) for each in state.past]
        return replace(state, past=past)

    def keep(self, state: SessionState, sentences: Tensor) -> SessionState:
        """Drop all sentences but these, with their beams."""
        source = [each.index_select(0, sentences) for each in state.source]
        return SessionState(source, [each.index_select(0, sentences) for each in state.past])

    def _read(self, source: Tensor) -> list[Tensor]:
        lengths = {"source": source.shape[1]} if source.ndim == 2 else {}
        return self.run("encoder", source, lengths=lengths)


@dataclass(frozen=True)
class TextState:
    """State of continuing texts between steps; rows are text x beam."""

    past: list[Tensor]  # keys and values (row, head, token, size) of each layer
    beams: int
    # Log-probabilities (row, vocabulary) of the first token after the prompt, until the first step.
    ready: Tensor | None


class ContinueModel(GraphModel):
    """A causal language model: the Step protocol over one graph with a cache."""

    def forward(
        self, tokens: Tensor, scored: Tensor | None = None, *others: Any, **parameters: Any
    ) -> Tensor:
        """Score every candidate behind each token, or behind those that are `scored`."""
        if others or parameters:
            super().forward()
        found = self._read(tokens, torch.arange(tokens.shape[1]), self._nothing(len(tokens)))[0]
        return found if scored is None else found[scored]

    def start(self, source: Tensor, beams: int, max_length: int) -> TextState:
        """Read prompts, the start token in front, all of one length."""
        check_prompts(source, self.config.pad)
        last = torch.tensor([source.shape[1] - 1])
        logits, *past = self._read(source, last, self._nothing(len(source)))
        rows = torch.arange(len(source)).repeat_interleave(beams)
        return self._select(TextState(past, beams, logits[:, 0].log_softmax(dim=-1)), rows)

    def step(self, tokens: Tensor, state: TextState) -> tuple[Tensor, TextState]:
        """Feed one token a beam; the first step returns the scores computed with the prompt."""
        if state.ready is not None:
            return state.ready.view(*tokens.shape, -1), replace(state, ready=None)
        logits, *past = self._read(tokens.reshape(-1, 1), torch.tensor([0]), state.past)
        scores = logits[:, 0].log_softmax(dim=-1)
        return scores.view(*tokens.shape, -1), replace(state, past=past)

    def reorder(self, state: TextState, beams: Tensor) -> TextState:
        """Let beam b of a text go on from its beam `beams[text, b]`."""
        return self._select(state, rows_of_beams(beams))

    def keep(self, state: TextState, sentences: Tensor) -> TextState:
        """Drop all texts but these, with their beams."""
        return self._select(state, rows_of_sentences(sentences, state.beams))

    def _select(self, state: TextState, rows: Tensor) -> TextState:
        ready = None if state.ready is None else state.ready[rows]
        return TextState([each.index_select(0, rows) for each in state.past], state.beams, ready)

    def _nothing(self, rows: int) -> list[Tensor]:
        """Return the past of texts that begin."""
        config = self.config
        empty = torch.empty(rows, config.heads, 0, config.dim // config.heads)
        return [empty] * (2 * config.layers)

    def _read(self, tokens: Tensor, positions: Tensor, past: Sequence[Tensor]) -> list[Tensor]:
        """Run the graph; past and new tokens together have to fit its positions."""
        length = past[0].shape[2] + tokens.shape[1]
        return self.run("decoder", tokens, positions, *past, lengths={"tokens": length})


MODELS: dict[frozenset[str], type[GraphModel]] = {
    frozenset({"model"}): OneGraph,
    frozenset({"images", "texts"}): Towers,
    frozenset({"encoder", "decoder"}): StepModel,
    frozenset({"decoder"}): ContinueModel,
}
