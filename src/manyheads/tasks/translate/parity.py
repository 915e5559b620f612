"""Compare a translator on an engine with the same on torch."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.engines.engine_parity import Parity
from manyheads.generation.special_ids import special_ids
from manyheads.generation.token_scores import largest_logit, token_log_probabilities
from manyheads.measure.parity_inputs import pairs_to_compare, run_both
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.recipe_data.text_data import PairData
from manyheads.tasks.translate.evaluation import corpus_to_measure
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe

BLEU = 0.3  # points of BLEU that may be lost; of other metrics those of `Parity.allowed`
SCORED = 100  # pairs whose tokens are scored: every token of each is compared


def parity(reference: Translator, exported: Translator, request: ParityRequest) -> Parity:
    """Translate the same texts on both, and score the same outputs token by token.

    Raises:
        NotFoundError: the recipe's validation data are not here, and nothing else was given.
    """
    recipe = cast(TranslateRecipe, reference.folder.recipe)
    metric = recipe.evaluate.metrics[0]
    name, sources, targets = _inputs(recipe.data, request)
    for each in (reference, exported):
        each.translate(sources[:1])  # the first is slower
    ours, theirs, seconds = run_both(
        reference, exported, lambda each: [best.text for best, *_ in each.translate(sources)]
    )
    before = after = None
    if targets is not None:
        measure = TEXT_METRICS[metric]
        before, after = (
            measure(outputs, targets, reference.target).value for outputs in (ours, theirs)
        )
    few = range(len(sources))[:: max(1, len(sources) // SCORED)]
    scored = ours if targets is None else targets
    return Parity(
        data=name,
        inputs=len(sources),
        compared="log-probabilities of tokens",
        difference=_difference(
            reference, exported, [sources[n] for n in few], [scored[n] for n in few]
        ),
        changed=float(np.mean([a != b for a, b in zip(ours, theirs, strict=True)])),
        metric=None if before is None else metric,
        before=before,
        after=after,
        allowed=BLEU if "bleu" in metric else Parity.allowed,
        seconds=seconds,
    )


def _inputs(data: PairData, request: ParityRequest) -> tuple[str, list[str], list[str] | None]:
    """Take texts from all over the data, with their translations."""
    if request.texts:
        return "texts given", list(request.texts), None
    corpus, head = pairs_to_compare(lambda given: corpus_to_measure(data, given), request)
    chosen = evenly_spaced(len(corpus), request.limit)
    return head["data"], [corpus.source[n] for n in chosen], [corpus.target[n] for n in chosen]


def _difference(
    reference: Translator, exported: Translator, sources: Sequence[str], outputs: Sequence[str]
) -> float:
    """Return the largest difference between scores of the same tokens, by the largest logit.

    Not by the largest score: of outputs that are certain, all scores are near 0.
    """
    end = special_ids(reference.model).end
    texts = [reference.read_source(text).text for text in sources]
    encoded = reference.tokenizers.source.encode(texts)
    target = reference.tokenizers.target.encode(outputs)
    limit = reference.most  # longer ones are not translated either
    pairs = [
        ([*source, end], output)
        for source, output in zip(encoded, target, strict=True)
        if max(len(source), len(output)) < limit - 1
    ]
    if not pairs:
        return 0.0
    given = [source for source, _ in pairs], [output for _, output in pairs]
    ours, theirs = (
        np.concatenate(token_log_probabilities(each.model, *given))
        for each in (reference, exported)
    )
    return float(np.abs(ours - theirs).max() / largest_logit(reference.model, *given))
