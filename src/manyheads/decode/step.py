"""The interface between search and model, and what a search returns."""

from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

from manyheads.nn.shapes import Kept, PerBeam, Scores, Sources, SourceWeights

State = TypeVar("State")


@runtime_checkable
class Step(Protocol[State]):
    """A model that scores next tokens. Search does not look into its state.

    The beam axis stays visible, so that a model reads each sentence's keys once for all its beams.
    """

    def start(self, source: Sources, beams: int, max_length: int) -> State:
        """Encode the sources and prepare for at most max_length tokens a beam."""

    def step(self, tokens: PerBeam, state: State) -> tuple[Scores, State]:
        """Feed each beam its last token; return log-probabilities of the next and the new state.

        The caller may change the tensor of log-probabilities.
        """

    def reorder(self, state: State, beams: PerBeam) -> State:
        """Let beam b of a sentence go on from its beam beams[sentence, b]."""

    def keep(self, state: State, sentences: Kept) -> State:
        """Drop all sentences but these."""


@runtime_checkable
class AttentionStep(Step[State], Protocol[State]):
    """A model that can also return its attention over the source, for the coverage penalty."""

    def step_with_attention(
        self, tokens: PerBeam, state: State
    ) -> tuple[Scores, State, SourceWeights | None]:
        """Step, and return how much each beam attends to each source token; rows sum to 1.

        None if this configuration of the model has no attention over the source.
        """


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output: its tokens without start and end, and its log-probability under the model.

    `log_probability` is the sum over tokens, the end token included. Hypotheses are ranked by
    `score`: that sum divided by length ** length_penalty, plus a bonus if the search has one.
    `finished` is False where the length limit cut the output off. `token_log_probabilities` are
    the terms of the sum, the end token's last if there is one. All are meant after the rules of
    the search: an end that was forced costs nothing.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool
    token_log_probabilities: list[float] = field(default_factory=list)
