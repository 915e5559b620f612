"""What is usual for a translator, from its translations of validation data; kept with the model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.data.text.corpus import Corpus
from manyheads.data.text.scripts import main_script
from manyheads.generation.text_decoding import Translation
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.predict.unusual import Measures, measure
from manyheads.project.domain import Domain
from manyheads.tasks.translate.predictor import Translator

BEYOND = 0.004  # share of the validation sources that may exceed a limit
LEAST = 250  # texts that limits are set from, or the share would be less than one text
RIGHT = 50.0  # chrF of a translation that is called right; with the metric exact, it is equal
NOTED_RIGHT = 0.05  # share of the right translations that may be called unsure
PRECISION = 1 / 3  # share of those called unsure that must be wrong

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def set_domain(
    translator: Translator, corpus: Corpus, translations: Sequence[Translation], data: str
) -> Domain | None:
    """Set the limits from validation data, called `data`; None if there are too few texts.

    The translations are the best of each source, found as the translator's [decode] table says.
    """
    kept = [index for index, text in enumerate(corpus.source) if text.strip()]
    if len(kept) < LEAST:
        return None
    source, script = translator.tokenizers.source, main_script("".join(corpus.source))
    corpus, translations = corpus.select(np.array(kept)), [translations[n] for n in kept]
    texts = [translator.read_source(text).text for text in corpus.source]
    measured = np.array(
        [
            measure(source, translator.measured(text, best.text), best, script)
            for text, best in zip(texts, translations, strict=True)
        ]
    )
    # Right is what the recipe's metric says if it is exact, else chrF.
    exact = translator.folder.recipe.metrics[0] == "exact"
    metric, outputs = TEXT_METRICS["exact" if exact else "chrf"], [t.text for t in translations]
    rows, value, _ = metric.statistics(outputs, corpus.references)
    right = np.array([value(row) for row in rows]) >= (100.0 if exact else RIGHT)
    limits = np.quantile(measured, 1 - BEYOND, axis=0)
    output = Measures._fields.index("output")
    limits[output] = surest_limit(measured[:, output], right)
    # Rounded up, so that the text that sets a limit keeps it on another processor.
    limits = np.ceil(limits * 1000) / 1000
    noted = (measured > limits).any(axis=1)
    return Domain(
        data=data,
        texts=len(kept),
        script=script,
        **Measures(*limits.tolist())._asdict(),
        noted_right=_percent(noted[right]),
        noted_wrong=_percent(noted[~right]),
    )


def surest_limit(output: Floats, right: Flags) -> float:
    """Return the limit on minus the mean log-probability a token above which a model is unsure.

    The lowest one that at most NOTED_RIGHT of the right translations exceed, and of those that
    exceed it PRECISION are wrong: a model that is hardly ever wrong is hardly ever called unsure.
    `output` has minus the mean log-probability a token of each translation.
    """
    order = np.argsort(-output, kind="stable")
    noted_right, noted = np.cumsum(right[order]), np.arange(1, len(output) + 1)
    good = (noted_right <= NOTED_RIGHT * right.sum()) & (noted - noted_right >= PRECISION * noted)
    usual = float(np.quantile(output, 1 - BEYOND))
    last = np.flatnonzero(good)
    if not len(last) or last[-1] + 1 == len(output):  # none of them, or all
        return usual if not len(last) else 0.0
    return min(usual, float(output[order[last[-1] + 1]]))


def _percent(flags: Flags) -> float:
    return round(100 * float(flags.mean()), 2) if len(flags) else 0.0


def unusual_share(
    translator: Translator, corpus: Corpus, translations: Sequence[Translation]
) -> float | None:
    """Return the percentage of texts that are reported as unusual; None without limits."""
    if translator.domain is None:
        return None
    pairs = zip(corpus.source, translations, strict=True)
    unusual = [translator.unusual(translator.read_source(t).text, b) for t, b in pairs]
    return 100 * sum(unusual) / len(unusual)
