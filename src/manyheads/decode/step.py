"""What search needs of a model, and what it gives back."""

from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

State = TypeVar("State")


@runtime_checkable
class Step(Protocol[State]):
    """A model that scores next tokens. The state is its own affair.

    The beam axis stays visible, so that a model reads each sentence's keys once for all its beams.
    """

    def start(self, source: Int[Tensor, "sentence source"], beams: int, max_length: int) -> State:
        """Read the sources and prepare for at most max_length tokens a beam."""

    def step(
        self, tokens: Int[Tensor, "sentence beam"], state: State
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], State]:
        """Feed each beam its last token; return log-probabilities of the next and the new state.

        The tensor of log-probabilities is the caller's, who may change it.
        """

    def reorder(self, state: State, beams: Int[Tensor, "sentence beam"]) -> State:
        """Let beam b of a sentence go on from its beam beams[sentence, b]."""

    def keep(self, state: State, sentences: Int[Tensor, " kept"]) -> State:
        """Drop all sentences but these."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output: its tokens without start and end, and how likely the model finds it.

    `log_probability` is the sum over tokens, the end token included; `score` is what hypotheses
    are ranked by: that sum divided by length ** length_penalty, and a bonus if the search has one.
    `finished` is False where the length limit cut the output off. `token_log_probabilities` are
    the terms of the sum, the end token's last if there is one. All are meant after the rules of
    the search: an end that was forced costs nothing.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool
    token_log_probabilities: list[float] = field(default_factory=list)
