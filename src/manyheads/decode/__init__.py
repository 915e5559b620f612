"""Search: from a model that scores the next token (`Step`) to whole outputs."""

from manyheads.lazy import lazy

HOMES = {
    "decode.beam": "beam_search",
    "decode.beam_selection": "BeamSelector Diverse TopK",
    "decode.constraints": "ForcedEnd ForcedPrefix MinLength NoRepeatNgram Rule SuppressTokens",
    "decode.coverage": "Coverage",
    "decode.greedy": "greedy_search",
    "decode.phrases": "PhraseConstraint Phrases",
    "decode.sampling": "Sampling sample",
    "decode.step": "AttentionStep Hypothesis Step",
}
__all__, __getattr__, __dir__ = lazy(__name__, HOMES)
