"""Score a translator once and again, for the worth of its heads."""

from typing import cast

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.heads_request import HeadsRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.measure.head_worth import Scorer
from manyheads.measure.text_metrics import TEXT_METRICS, Statistics
from manyheads.tasks.translate.evaluation import corpus_to_measure
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe


def scorer(translator: Translator, request: HeadsRequest) -> Scorer:
    """Translate greedily, and score by the recipe's first metric."""
    recipe = cast(TranslateRecipe, translator.folder.recipe)
    asked = EvaluateRequest(data=request.data, remote=request.remote, split=request.split)
    corpus, head = corpus_to_measure(recipe.data, asked)
    chosen = evenly_spaced(len(corpus), request.limit)
    sources = [corpus.source[n] for n in chosen]
    references = [corpus.references[n] for n in chosen]
    metric = recipe.evaluate.metrics[0]

    def score() -> Statistics:
        outputs = [best.text for best, *_ in translator.translate(sources, beams=1)]
        return TEXT_METRICS[metric].statistics(outputs, references, translator.target)

    return Scorer(f"{metric} (greedy)", head["data"], len(sources), score)
