"""Tell an open recorder what a search does, so that what is recorded can be put in order again."""

from dataclasses import dataclass, replace
from typing import Any, Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.decode.step import State, Step
from manyheads.nn.moments import CandidateRecord, Moment, Search, during
from manyheads.nn.trace import Site, active

CANDIDATES = 5  # likeliest next tokens of a beam that are recorded
SITE = Site("search", 0, "candidates")


def follow(model: Step[State]) -> Step[Any]:
    """Return the model, with a recorder open one that tells what its beams have read.

    What it answers are the model's own tensors.
    """
    return model if active() is None else Followed(model)


def inner(state: Any) -> Any:
    """Take the model's own state out of that of a followed one."""
    return state.inner if isinstance(state, Following) else state


@dataclass(frozen=True)
class Following(Generic[State]):
    """A decoder's state, and what each of its beams has read."""

    inner: State
    moment: Moment


class Followed(Generic[State]):
    """The Step protocol around a model: says at every step whose tokens are read."""

    def __init__(self, model: Step[State]) -> None:
        self.model = model

    def start(
        self, source: Int[Tensor, "sentence source"], beams: int, max_length: int
    ) -> Following[State]:
        """Begin a search."""
        read = torch.empty((len(source), beams, 0), dtype=torch.long, device=source.device)
        every = torch.arange(len(source), device=source.device)
        moment = Moment(Search(source), every, read)
        with during(moment):
            return Following(self.model.start(source, beams, max_length), moment)

    def step(
        self, tokens: Int[Tensor, "sentence beam"], state: Following[State]
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], Following[State]]:
        """Read one more token a beam, and keep what is likeliest behind it."""
        read = torch.cat((state.moment.read, tokens[..., None]), dim=2)
        moment = replace(state.moment, read=read)
        with during(moment):
            log_probabilities, after = self.model.step(tokens, state.inner)
        trace = active()
        if trace is not None:
            best = log_probabilities.topk(min(CANDIDATES, log_probabilities.shape[-1]))
            trace.add(CandidateRecord(SITE, best.indices, best.values, moment))
        return log_probabilities, Following(after, moment)

    def reorder(
        self, state: Following[State], beams: Int[Tensor, "sentence beam"]
    ) -> Following[State]:
        """Each beam goes on from what its origin has read."""
        read = state.moment.read
        chosen = read.gather(1, beams[..., None].expand(-1, -1, read.shape[2]))
        moment = replace(state.moment, read=chosen)
        return Following(self.model.reorder(state.inner, beams), moment)

    def keep(self, state: Following[State], sentences: Int[Tensor, " kept"]) -> Following[State]:
        """Drop all sentences but these."""
        moment = replace(
            state.moment,
            sentences=state.moment.sentences[sentences],
            read=state.moment.read[sentences],
        )
        return Following(self.model.keep(state.inner, sentences), moment)
