"""Scores on texts. Values are percentages, as the field reports them.

A corpus score is a function of sums over sentences: of n-grams matched, of edits, of outputs that
are right. `statistics` returns what is summed, one row a sentence, so that a bootstrap can score a
thousand samples of a corpus without reading a text twice.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from manyheads.data.languages import base
from manyheads.errors import MissingExtraError

TextMetric = Literal["bleu", "chrf", "ter", "exact", "bleu_lc_tok"]


class Score(NamedTuple):
    """A value, and a signature that says how it was computed."""

    value: float
    signature: str


class Statistics(NamedTuple):
    """What a corpus score is computed from."""

    rows: np.ndarray  # (sentence, statistic)
    value: Callable[[np.ndarray], float]  # the score, from the sum of any rows
    signature: str


class Metric(Protocol):
    """Called with outputs, references and the language of both, it answers with a Score."""

    def __call__(
        self, outputs: Sequence[str], references: Sequence[str], language: str = ""
    ) -> Score:
        """Score a corpus."""

    def statistics(
        self, outputs: Sequence[str], references: Sequence[str], language: str = ""
    ) -> Statistics:
        """Return what the score is computed from, sentence by sentence."""


class ExactMatch:
    """Percentage of outputs that equal their reference, character by character."""

    def __call__(
        self, outputs: Sequence[str], references: Sequence[str], language: str = ""
    ) -> Score:
        """Score a corpus."""
        rows, value, signature = self.statistics(outputs, references, language)
        return Score(value(rows.sum(axis=0)), signature)

    def statistics(
        self, outputs: Sequence[str], references: Sequence[str], language: str = ""
    ) -> Statistics:
        """Return for each sentence: 1 if it is right, and 1."""
        same = [float(o == r) for o, r in zip(outputs, references, strict=True)]
        rows = np.stack([same, np.ones(len(same))], axis=1)
        return Statistics(rows, lambda sums: float(100 * sums[0] / sums[1]), "exact match")


class Method(NamedTuple):
    """How sacrebleu scores texts of one language."""

    metric: Any
    prepare: Callable[[str], str] = str  # applied to outputs and references first
    notes: Mapping[str, str] = MappingProxyType({})  # what the signature has to say about that


class Sacrebleu:
    """A metric of sacrebleu (Post 2018), with its signature.

    Calling it raises MissingExtraError if sacrebleu, or what it needs for a language, is missing.
    """

    def __init__(self, method: Callable[[str], Method]) -> None:
        self.method = method

    def __call__(
        self, outputs: Sequence[str], references: Sequence[str], language: str = ""
    ) -> Score:
        """Score a corpus."""
        method = self.method(language)
        prepared, wanted = _prepare(method, outputs, references)
        score = method.metric.corpus_score(prepared, [wanted])
        return Score(score.score, _signature(method))

    def statistics(
        self, outputs: Sequence[str], references: Sequence[str], language: str = ""
    ) -> Statistics:
        """Return the counts that the score is computed from, for each sentence."""
        method = self.method(language)
        metric = method.metric
        prepared, wanted = _prepare(method, outputs, references)
        # sacrebleu makes these public to its own significance tests only.
        rows = np.array(metric._extract_corpus_statistics(prepared, [wanted]), dtype=float)
        return Statistics(
            rows,
            lambda sums: float(metric._compute_score_from_stats(sums.tolist()).score),
            _signature(method),
        )


def _prepare(
    method: Method, outputs: Sequence[str], references: Sequence[str]
) -> tuple[list[str], list[str]]:
    pairs = zip(outputs, references, strict=True)  # a missing output must not go unnoticed
    both = [(method.prepare(output), method.prepare(reference)) for output, reference in pairs]
    return [output for output, _ in both], [reference for _, reference in both]


def _signature(method: Method) -> str:
    signature = method.metric.get_signature()
    for name, value in method.notes.items():
        signature.update(name, value)
    return str(signature)


def _bleu(language: str) -> Method:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise MissingExtraError(package="sacrebleu", extra="text") from None
    language = base(language)  # sacrebleu knows ja, but would take 13a for ja_JP
    try:
        return Method(BLEU(trg_lang=language))
    except RuntimeError:  # the tokenizers of these two languages are packages of their own
        package, extra = {"ko": ("mecab-ko", "korean"), "ja": ("mecab-python3", "japanese")}[
            language
        ]
        raise MissingExtraError(package=package, extra=extra) from None


def _chrf(language: str) -> Method:  # noqa: ARG001 - the same for every language
    try:
        from sacrebleu.metrics.chrf import CHRF
    except ImportError:
        raise MissingExtraError(package="sacrebleu", extra="text") from None
    return Method(CHRF())


def _ter(language: str) -> Method:
    try:
        from sacrebleu.metrics.ter import TER
    except ImportError:
        raise MissingExtraError(package="sacrebleu", extra="text") from None
    # Words of these languages are not separated by spaces: count edits of characters.
    unspaced = base(language) in ("zh", "ja")
    return Method(TER(normalized=unspaced, asian_support=unspaced))


def _bleu_lc_tok(language: str) -> Method:
    try:
        import sacremoses
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise MissingExtraError(package=error.name or "sacremoses", extra="text") from None
    # As the Perl scripts that made the published files: their lines still end with \n when quotes
    # and full stops change places, and ’ between no letters of a-z becomes a double quote.
    normalizer = sacremoses.MosesPunctNormalizer(language, perl_parity=True)
    tokenizer = sacremoses.MosesTokenizer(language)

    def prepare(text: str) -> str:
        normal = normalizer.normalize(text.lower() + "\n")
        tokens: str = tokenizer.tokenize(normal, escape=True, return_str=True)
        return tokens

    notes = {
        "case": "lc",
        "norm": f"moses-{language}",
        "pretok": f"moses-{language}-escaped",
        "sacremoses": sacremoses.__version__,
    }
    return Method(BLEU(tokenize="none", force=True), prepare, notes)


exact_match = ExactMatch()
# BLEU (Papineni et al. 2002) of detokenised text, with the tokenizer that sacrebleu has for the
# language: 13a for most, morphemes for Korean (docs/decisions/korean-bleu.md).
bleu = Sacrebleu(_bleu)
# chrF2: character n-grams up to 6, recall weighs twice (Popović 2015).
chrf = Sacrebleu(_chrf)
# Edits a reference word, shifts included (Snover et al. 2006): lower is better, may exceed 100.
ter = Sacrebleu(_ter)
# BLEU of lower-cased, normalised, tokenised text, both sides prepared from raw text as Multi30k's
# `lc.norm.tok` files were: the number that papers on Multi30k print, and no other to compare with.
bleu_lc_tok = Sacrebleu(_bleu_lc_tok)

TEXT_METRICS: dict[TextMetric, Metric] = {
    "bleu": bleu,
    "chrf": chrf,
    "ter": ter,
    "exact": exact_match,
    "bleu_lc_tok": bleu_lc_tok,
}
