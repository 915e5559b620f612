"""Text metrics, in percent.

A corpus score is a function of sums over sentences: of matched n-grams, of edits, of exact matches.
`statistics` returns the summands, one row per sentence, so that a bootstrap can score a thousand
samples of a corpus without processing a text twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from manyheads.asks.evaluate_request import TextMetric
from manyheads.data.text.languages import base
from manyheads.errors import MissingExtraError, optional_import

References = str | Sequence[str]  # of one output


class Score(NamedTuple):
    """A value, and a signature of how it was computed."""

    value: float
    signature: str


class Statistics(NamedTuple):
    """The statistics per sentence that a corpus score is computed from."""

    rows: np.ndarray  # (sentence, statistic)
    value: Callable[[np.ndarray], float]  # the score, from the sum of any rows
    signature: str

    @classmethod
    def mean(cls, values: np.ndarray, signature: str) -> "Statistics":
        """Make those of a score that is the mean of a value for each example."""
        rows = np.stack([values, np.ones(len(values))], axis=1)
        return cls(rows, lambda sums: float(sums[0] / sums[1]), signature)


@dataclass(frozen=True)
class Metric:
    """A text metric: returns the Score of outputs, given references and their language.

    An output may have several references, all of them right. `statistics` takes the same; it raises
    MissingExtraError where sacrebleu, or its tokenizer for the language, is not installed.
    """

    statistics: Callable[..., Statistics]  # of each sentence

    def __call__(
        self, outputs: Sequence[str], references: Sequence[References], language: str = ""
    ) -> Score:
        """Score a corpus."""
        rows, value, signature = self.statistics(outputs, references, language)
        return Score(value(rows.sum(axis=0)), signature)


def _several(references: References) -> Sequence[str]:
    return [references] if isinstance(references, str) else references


def _exact(outputs: Sequence[str], references: Sequence[References], _: str = "") -> Statistics:
    """Return for each sentence: 100 if it equals a reference in every character, else 0; and 1."""
    same = [100.0 * (o in _several(r)) for o, r in zip(outputs, references, strict=True)]
    return Statistics.mean(np.array(same), "exact match")


class Method(NamedTuple):
    """The settings of sacrebleu for one language."""

    metric: Any
    prepare: Callable[[str], str] = str  # applied to outputs and references first
    notes: Mapping[str, str] = MappingProxyType({})  # entries for the signature


def _sacrebleu(method_of: Callable[[str], Method]) -> Metric:
    """Return a metric of sacrebleu (Post 2018), with its signature."""

    def statistics(
        outputs: Sequence[str], references: Sequence[References], language: str = ""
    ) -> Statistics:
        metric, prepare, notes = method_of(language)
        several = [[prepare(each) for each in _several(r)] for r in references]
        # Strict: a missing output must not go unnoticed.
        texts = [prepare(o) for o, _ in zip(outputs, references, strict=True)]
        # One list of all first references, one of all second ones, ...: None where there is none.
        most = max(map(len, several), default=1)
        streams = [[r[n] if n < len(r) else None for r in several] for n in range(most)]
        # Private methods that sacrebleu uses in its own significance tests.
        rows = metric._extract_corpus_statistics(texts, streams)
        signature = metric.get_signature()
        for name, value in notes.items():
            signature.update(name, value)
        return Statistics(
            np.array(rows, dtype=float),
            lambda sums: float(metric._compute_score_from_stats(sums.tolist()).score),
            str(signature),
        )

    return Metric(statistics)


def _bleu(language: str) -> Method:
    with optional_import("sacrebleu", extra="text"):
        from sacrebleu.metrics.bleu import BLEU
    language = base(language)  # sacrebleu supports ja, but would use 13a for ja_JP
    try:
        return Method(BLEU(trg_lang=language))
    except RuntimeError:  # the tokenizers of these two languages are separate packages
        packages = {"ko": ("mecab-ko", "korean"), "ja": ("mecab-python3", "japanese")}
        package, extra = packages[language]
        raise MissingExtraError(package=package, extra=extra) from None


def _chrf(language: str) -> Method:  # noqa: ARG001 - the same for every language
    with optional_import("sacrebleu", extra="text"):
        from sacrebleu.metrics.chrf import CHRF
    return Method(CHRF())


def _ter(language: str) -> Method:
    with optional_import("sacrebleu", extra="text"):
        from sacrebleu.metrics.ter import TER
    # Words of these languages are not separated by spaces: count edits of characters.
    unspaced = base(language) in ("zh", "ja")
    return Method(TER(normalized=unspaced, asian_support=unspaced))


def lower_cased_tokens(language: str) -> Method:
    """Prepare texts as the Perl scripts that made Multi30k's `lc.norm.tok` files did."""
    with optional_import("sacremoses", extra="text"):
        import sacremoses
    with optional_import("sacrebleu", extra="text"):
        from sacrebleu.metrics.bleu import BLEU
    # Lines still end with \n when quotes and full stops are swapped, and ’ that is not between
    # letters a-z becomes a double quote.
    normalizer = sacremoses.MosesPunctNormalizer(language, perl_parity=True)
    tokenizer = sacremoses.MosesTokenizer(language)

    def prepare(text: str) -> str:
        normal = normalizer.normalize(text.lower() + "\n")
        return tokenizer.tokenize(normal, escape=True, return_str=True)

    notes = {
        "case": "lc",
        "norm": f"moses-{language}",
        "pretok": f"moses-{language}-escaped",
        "sacremoses": sacremoses.__version__,
    }
    return Method(BLEU(tokenize="none", force=True), prepare, notes)


# Percentage of outputs that equal their reference, character by character.
exact_match = Metric(_exact)
# BLEU (Papineni et al. 2002) of detokenised text, with sacrebleu's tokenizer for the language: 13a
# for most, morphemes for Korean (docs/decisions/korean-bleu.md).
bleu = _sacrebleu(_bleu)
# chrF2: character n-grams up to 6, recall has twice the weight of precision (Popović 2015).
chrf = _sacrebleu(_chrf)
# Edits per reference word, shifts included (Snover et al. 2006): lower is better, may exceed 100.
ter = _sacrebleu(_ter)
# BLEU of lower-cased, normalised, tokenised text, prepared like Multi30k's `lc.norm.tok` files: the
# number in papers on Multi30k; compare it only with those.
bleu_lc_tok = _sacrebleu(lower_cased_tokens)

TEXT_METRICS: dict[TextMetric, Metric] = {
    "bleu": bleu,
    "chrf": chrf,
    "ter": ter,
    "exact": exact_match,
    "bleu_lc_tok": bleu_lc_tok,
}
