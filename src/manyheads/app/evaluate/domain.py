"""What is usual for a translator, from its translations of validation data; kept with the model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.app.predictors.translator import Translator
from manyheads.app.predictors.unusual import Measures, measure
from manyheads.app.project.domain import Domain
from manyheads.data.text.corpus import Corpus
from manyheads.tasks.decoding import Translation
from manyheads.tasks.output_monitor import main_script

BEYOND = 0.004  # share of the validation texts that may exceed a limit
LEAST = 250  # texts that limits are set from, or the share would be less than one text
FOLDS = 10

Floats = NDArray[np.float64]


def set_domain(
    translator: Translator, corpus: Corpus, found: Sequence[Translation], data: str
) -> Domain | None:
    """Set the limits so that nearly all texts keep them; None if there are too few texts.

    Args:
        translator: whose translations they are, found as its [decode] table says.
        corpus: validation data.
        found: the best translation of each source.
        data: what to call the data.
    """
    pairs = [(text, best) for text, best in zip(corpus.source, found, strict=True) if text.strip()]
    if len(pairs) < LEAST:
        return None
    source, script = translator.tokenizers.source, main_script("".join(corpus.source))
    measured = np.array(
        [measure(source, translator.read_source(t).text, best, script) for t, best in pairs]
    )
    fold = np.arange(len(measured)) % FOLDS
    beyond = [
        (measured[fold == n] > _limits(measured[fold != n])).any(axis=1).sum() for n in range(FOLDS)
    ]
    # Rounded up, so that the text that sets a limit keeps it on another processor.
    limits = Measures(*(np.ceil(_limits(measured) * 1000) / 1000).tolist())
    return Domain(
        data=data,
        texts=len(pairs),
        script=script,
        **limits._asdict(),
        beyond=round(100 * float(sum(beyond)) / len(pairs), 2),
    )


def _limits(measured: Floats) -> Floats:
    return np.quantile(measured, 1 - BEYOND, axis=0)


def unusual_share(
    translator: Translator, corpus: Corpus, found: Sequence[Translation]
) -> float | None:
    """Return the percentage of texts that are reported as unusual; None without limits."""
    if translator.domain is None:
        return None
    pairs = zip(corpus.source, found, strict=True)
    unusual = [any(translator.unusual(translator.read_source(t).text, b)) for t, b in pairs]
    return 100 * sum(unusual) / len(unusual)
