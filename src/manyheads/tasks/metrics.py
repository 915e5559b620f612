"""Scores on texts. Values are percentages, as the field reports them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from manyheads.errors import MissingExtraError

TextMetric = Literal["bleu", "exact"]


class Score(NamedTuple):
    """A value, and a signature that says how it was computed."""

    value: float
    signature: str


def exact_match(outputs: Sequence[str], references: Sequence[str]) -> Score:
    """Percentage of outputs that equal their reference, character by character."""
    same = sum(output == reference for output, reference in zip(outputs, references, strict=True))
    return Score(100 * same / len(references), "exact match")


def bleu(outputs: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus BLEU of detokenised text (Papineni et al. 2002), by sacrebleu with its defaults.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise MissingExtraError(package="sacrebleu", extra="text") from None
    metric = BLEU()
    score = metric.corpus_score(list(outputs), [list(references)])
    return Score(score.score, str(metric.get_signature()))


TEXT_METRICS = {"bleu": bleu, "exact": exact_match}
