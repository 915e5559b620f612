"""Report the steps of a search to an open recorder, so that its records can be put in order."""

from dataclasses import dataclass, replace
from typing import Any, Generic

import torch

from manyheads.decode.step import State, Step
from manyheads.nn.editing.seam import edits_open, search_rows
from manyheads.nn.recording.beam_candidates import record_candidates
from manyheads.nn.recording.decode_steps import DecodeStep, Search
from manyheads.nn.recording.trace import active
from manyheads.nn.recording.tracking import step_context
from manyheads.nn.shapes import Kept, PerBeam, Scores, Sources


def traced_step(model: Step[State]) -> Step[Any]:
    """Return the model; if a recorder or an edit is open, a wrapper that reports its steps.

    The wrapper returns the model's own tensors.
    """
    return TracedStep(model) if active() is not None or edits_open() else model


def inner(state: Any) -> Any:
    """Return the model's own state of a traced or a plain one."""
    return state.inner if isinstance(state, TracedState) else state


@dataclass(frozen=True)
class TracedState(Generic[State]):
    """A decoder's state, and the step that its search is in."""

    inner: State
    decode_step: DecodeStep


class TracedStep(Generic[State]):
    """The Step protocol around a model: reports each step to the open recorder."""

    def __init__(self, model: Step[State]) -> None:
        self.model = model

    def start(self, source: Sources, beams: int, max_length: int) -> TracedState[State]:
        """Begin a search."""
        read = torch.empty((len(source), beams, 0), dtype=torch.long, device=source.device)
        every = torch.arange(len(source), device=source.device)
        step = DecodeStep(Search(source), every, read)
        with step_context(step):
            return TracedState(self.model.start(source, beams, max_length), step)

    def step(self, tokens: PerBeam, state: TracedState[State]) -> tuple[Scores, TracedState[State]]:
        """Feed one token a beam, and record the most likely next tokens."""
        read = torch.cat((state.decode_step.read, tokens[..., None]), dim=2)
        step = replace(state.decode_step, read=read)
        with step_context(step), search_rows(step.sentences, step.step - 1):
            log_probabilities, after = self.model.step(tokens, state.inner)
        record_candidates(log_probabilities, step)
        return log_probabilities, TracedState(after, step)

    def reorder(self, state: TracedState[State], beams: PerBeam) -> TracedState[State]:
        """Continue each beam from the beam it grew out of."""
        read = state.decode_step.read
        chosen = read.gather(1, beams[..., None].expand(-1, -1, read.shape[2]))
        step = replace(state.decode_step, read=chosen)
        return TracedState(self.model.reorder(state.inner, beams), step)

    def keep(self, state: TracedState[State], sentences: Kept) -> TracedState[State]:
        """Drop all sentences but these."""
        step = replace(
            state.decode_step,
            sentences=state.decode_step.sentences[sentences],
            read=state.decode_step.read[sentences],
        )
        return TracedState(self.model.keep(state.inner, sentences), step)
