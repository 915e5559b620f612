"""Compare two systems on the same sentences: significance by resampling."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from manyheads.asks.evaluate_request import EvaluateRequest, TextMetric
from manyheads.data.text.corpus import Corpus, read_lines
from manyheads.data.text.lines import ending
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.measure import bootstrap
from manyheads.measure.bootstrap import SAMPLES, SEED
from manyheads.measure.score import heading, scored
from manyheads.measure.stored_model import log
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.predict.load import load
from manyheads.project.paths import allow, find_data, here
from manyheads.tasks.translate.evaluation import corpus_to_measure, measure
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.train.training_task import lower_is_better

LEVEL = 0.05  # a difference whose p-values are not below it is called none
FOR_FILES: tuple[TextMetric, ...] = ("bleu", "chrf")  # where no recipe names metrics
References = tuple[Corpus, str, dict[str, Any]]  # with their language and the heading of scores


def compare(
    a: str,
    b: str,
    *,
    data: str | None = None,
    split: str = "valid",
    final: bool = False,
    remote: bool = False,
    metrics: Sequence[TextMetric] = (),
    samples: int = SAMPLES,
    seed: int = SEED,
    **loading: Any,
) -> dict[str, Any]:
    """Compare two systems by resampling their sentences; log what models scored in their folders.

    `a` and `b` are models (name or folder) or files of translations, one a line. Without `data`,
    they are compared on the split of the first model's recipe; two files need the file of the
    references. `remote` reads data by addresses that the recipes name. `metrics` are added to those
    of the recipes; `loading` are parameters of `load`, such as `engine`. For each metric the result
    has both scores and their difference with 95% intervals, two p-values, and the better one or
    None.

    Raises:
        UsageError: a test split without final; systems of different languages; no references.
        DataError: a file has another number of lines than there are references.
    """
    systems = [_system(name, loading) for name in (a, b)]
    request = EvaluateRequest(data=data, split=split, final=final)
    models = [system for system in systems if isinstance(system, Translator)]
    recipes = [cast(TranslateRecipe, model.folder.recipe) for model in models]
    if remote:
        for recipe in recipes:
            allow(*dict(recipe.data).values())
    measured = [name for recipe in recipes for name in recipe.evaluate.metrics]
    names = tuple(dict.fromkeys([*(measured if recipes else FOR_FILES), *metrics]))
    corpus, language, head = _references(recipes, request)
    for name, system in zip((a, b), systems, strict=True):  # before anything is translated
        if not isinstance(system, Translator) and len(system) != len(corpus):
            raise DataError(
                f"{name} has {len(system):,} lines, {corpus.origin} {len(corpus):,}: line N must "
                "be the translation of sentence N."
            )
    outputs = [_outputs(system, corpus, head, names) for system in systems]
    return (
        {"a": a, "b": b}
        | head
        | {"pairs": len(corpus), "samples": samples, "seed": seed}
        | {"all": {n: _compare(n, outputs, corpus, language, samples, seed) for n in names}}
    )


def _compare(
    name: TextMetric,
    outputs: Sequence[list[str]],
    corpus: Corpus,
    language: str,
    samples: int,
    seed: int,
) -> dict[str, Any]:
    statistics = [TEXT_METRICS[name].statistics(o, corpus.target, language) for o in outputs]
    comparison = bootstrap.compare(*statistics, samples=samples, seed=seed)
    sure = max(comparison.p_bootstrap, comparison.p_randomisation) < LEVEL
    b_better = (comparison.difference.value > 0) != lower_is_better(name)
    return {
        "signature": statistics[0].signature,
        "a": comparison.a._asdict(),
        "b": comparison.b._asdict(),
        "difference": comparison.difference._asdict(),
        "p_bootstrap": comparison.p_bootstrap,
        "p_randomisation": comparison.p_randomisation,
        "better": ("b" if b_better else "a") if sure else None,
    }


def _system(name: str, loading: dict[str, Any]) -> Translator | list[str]:
    try:
        model = load(name, **loading)
    except NotFoundError as error:
        if Path(name).is_file():
            return read_lines(Path(name))[0]
        raise NotFoundError(f"{error} Nor is it a file of translations, one a line.") from None
    if not isinstance(model, Translator):
        raise UsageError(f"{name} does not translate: only translations are compared.")
    return model


def _references(recipes: Sequence[TranslateRecipe], request: EvaluateRequest) -> References:
    data = request.data
    if recipes:
        directions = {f"{recipe.data.source}-{recipe.data.target}" for recipe in recipes}
        if len(directions) > 1:
            raise UsageError(
                f"The models translate {' and '.join(sorted(directions))}: compare models of one "
                "pair of languages."
            )
        others = [recipe.data for recipe in recipes[1:]]
        corpus, head = corpus_to_measure(recipes[0].data, request, others=others)
        return corpus, recipes[0].data.target, head
    if data is None:
        raise UsageError(
            "Neither is a model whose recipe names data: give the file of the references as "
            "`data`, one a line, its ending the language (val.de)."
        )
    if "*" in data:
        raise UsageError(f"{data!r} is a pattern: give the name of one file of references.")
    (path,) = find_data(here(data), None)
    lines, digest = read_lines(path)
    head = heading(str(path), [digest], request, None)
    return Corpus(lines, lines, str(path)), ending(path).removeprefix("."), head


def _outputs(
    system: Translator | list[str],
    corpus: Corpus,
    head: dict[str, Any],
    metrics: tuple[TextMetric, ...],
) -> list[str]:
    if not isinstance(system, Translator):
        return system
    outputs, scores, more = measure(system, corpus, metrics, EvaluateRequest())
    log(system.folder, head | scored(scores) | more)
    return outputs
