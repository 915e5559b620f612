"""Compare a translator on an engine with the same on torch."""

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np

from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.engines.engine_parity import Parity
from manyheads.generation.special_ids import special_ids
from manyheads.generation.token_scores import largest_logit, token_log_probabilities
from manyheads.measure.parity_inputs import compare_engines, data_to_compare
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.recipe_data.pair_data import PairData
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
    few = range(len(sources))[:: max(1, len(sources) // SCORED)]

    def difference(ours: list[str], _: list[str]) -> float:
        outputs = ours if targets is None else targets
        pairs = [sources[n] for n in few], [outputs[n] for n in few]
        return _difference(reference, exported, *pairs)

    return compare_engines(
        reference,
        exported,
        lambda each: [best.text for best, *_ in each.translate(sources)],
        answers=list,
        difference=difference,
        score=None
        if targets is None
        else lambda outputs: TEXT_METRICS[metric](outputs, targets, reference.target).value,
        metric=metric,
        allowed=BLEU if "bleu" in metric else Parity.allowed,
        compared="log-probabilities of tokens",
        data=name,
    )


def _inputs(data: PairData, request: ParityRequest) -> tuple[str, list[str], list[str] | None]:
    """Take texts from all over the data, with their translations."""
    if request.texts:
        return "texts given", list(request.texts), None
    corpus, head = data_to_compare(
        partial(corpus_to_measure, data), request, "pairs", or_texts=True
    )
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
    both = [source for source, _ in pairs], [output for _, output in pairs]
    ours, theirs = (
        np.concatenate(token_log_probabilities(each.model, *both)) for each in (reference, exported)
    )
    return float(np.abs(ours - theirs).max() / largest_logit(reference.model, *both))
