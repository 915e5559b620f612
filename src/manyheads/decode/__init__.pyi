"""Public names, for type checkers and editors; programs import each when it is used."""

from manyheads.decode.beam import beam_search
from manyheads.decode.beam_selection import BeamSelector, Diverse, TopK
from manyheads.decode.constraints import (
    ForcedEnd,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    Rule,
    SuppressTokens,
)
from manyheads.decode.coverage import Coverage
from manyheads.decode.greedy import greedy_search
from manyheads.decode.phrases import PhraseConstraint, Phrases
from manyheads.decode.sampling import Sampling, sample
from manyheads.decode.step import AttentionStep, Hypothesis, Step

__all__ = ["AttentionStep", "BeamSelector", "Coverage", "Diverse", "ForcedEnd", "ForcedPrefix"]
__all__ += ["Hypothesis", "MinLength", "NoRepeatNgram", "PhraseConstraint", "Phrases", "Rule"]
__all__ += ["Sampling", "Step", "SuppressTokens", "TopK", "beam_search", "greedy_search", "sample"]
