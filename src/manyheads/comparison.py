"""Compare systems on the same examples: significance by resampling."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from manyheads.asks.evaluate_request import EvaluateRequest, TextMetric
from manyheads.data.text.corpus import Corpus, read_lines
from manyheads.data.text.lines import ending
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.lens.view.plain_page import plain_page
from manyheads.measure import bootstrap
from manyheads.measure.bootstrap import SAMPLES, SEED
from manyheads.measure.score import Line, heading, scored
from manyheads.measure.stored_model import log
from manyheads.measure.text_metrics import TEXT_METRICS, Score, Statistics
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.load import load
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.paths import allow, find_data, here
from manyheads.tasks.translate.evaluation import corpus_to_measure, measure
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.train.training_task import lower_is_better

LEVEL = 0.05  # a difference whose p-values are not below it is called none
FOR_FILES: tuple[TextMetric, ...] = ("bleu", "chrf")  # where no recipe names metrics
HEADING = ("data", "split", "registered", "sha256", "final")
Tables = dict[str, list[Any]]  # for each metric the statistics of the systems
References = tuple[Corpus, str, dict[str, Any]]  # with their language and the heading of scores


def compare(
    a: str,
    b: str,
    *more: str,
    data: str | None = None,
    split: str = "valid",
    final: bool = False,
    remote: bool = False,
    metrics: Sequence[TextMetric] = (),
    samples: int = SAMPLES,
    seed: int = SEED,
    **loading: Any,
) -> dict[str, Any]:
    """Compare systems by resampling their examples; log what translators scored in their folders.

    The systems are models (name or folder) of one task, or files of translations, one a line.
    Without `data`, they are compared on the split of the first model's recipe; files alone need the
    file of the references. `remote` reads data by addresses that the recipes name. `metrics` are
    added to those of translators; `loading` are parameters of `load`, such as `engine`.

    Returns:
        For each metric under "all": the `scores` of the systems, and under `pairs` each later
        system against the first: the difference, both with 95% intervals, two p-values, and the
        better one ("a" is the first, "b" the other) or None. With several pairs, better is what
        remains so by the correction of Holm (1979). Of two systems, all this stands beside
        `scores`, too. A task whose examples have no scores of their own has no pairs.

    Raises:
        UsageError: a test split without final; systems of different tasks or languages, or
            measured on different data; no references.
        DataError: a file has another number of lines than there are references.
    """
    names = (a, b, *more)
    systems = [_system(name, loading) for name in names]
    request = EvaluateRequest(data=data, split=split, final=final)
    recipes = [each.folder.recipe for each in systems if not isinstance(each, list)]
    tasks = list(dict.fromkeys(recipe.task for recipe in recipes))
    if len(tasks) > 1 or (tasks not in ([], ["translate"]) and len(recipes) < len(systems)):
        raise UsageError(
            f"{', '.join(names)} are not of one task ({', '.join(tasks)}; files hold translations):"
            " compare what answers the same."
        )
    if remote:
        for recipe in recipes:
            allow(*dict(recipe.data).values())
    if tasks in ([], ["translate"]):
        head, tables = _translations(names, systems, recipes, request, metrics)
    elif metrics:
        raise UsageError("`metrics` are those of translators: leave them out.")
    else:
        head, tables = _measured(cast(list[Predictor], systems), request)
    compared = {name: _compare(name, table, samples, seed) for name, table in tables.items()}
    first = next(iter(tables.values()))[0]
    counted = "pairs" if tasks in ([], ["translate"]) else "examples"
    count = {counted: len(first.rows)} if isinstance(first, Statistics) else {}
    two = {"a": a, "b": b} if not more else {}
    settings = {"samples": samples, "seed": seed}
    return two | {"systems": list(names)} | head | count | settings | {"all": compared}


def _translations(
    names: Sequence[str],
    systems: Sequence[Any],
    recipes: Sequence[Any],
    request: EvaluateRequest,
    metrics: Sequence[TextMetric],
) -> tuple[Line, Tables]:
    """Translate what the systems are compared on, and return the statistics by metric."""
    of_recipes = [name for recipe in recipes for name in recipe.evaluate.metrics]
    chosen = tuple(dict.fromkeys([*(of_recipes if recipes else FOR_FILES), *metrics]))
    corpus, language, head = _references(recipes, request)
    for name, system in zip(names, systems, strict=True):  # before anything is translated
        if not isinstance(system, Translator) and len(system) != len(corpus):
            raise DataError(
                f"{name} has {len(system):,} lines, {corpus.origin} {len(corpus):,}: line N must "
                "be the translation of sentence N."
            )
    outputs: list[list[str]] = []
    for system in systems:
        if isinstance(system, Translator):
            translations, scores, more = measure(system, corpus, chosen, EvaluateRequest())
            log(system.folder, head | scored(scores) | more)
            outputs.append(translations)
        else:
            outputs.append(system)
    return head, {
        name: [TEXT_METRICS[name].statistics(o, corpus.target, language) for o in outputs]
        for name in chosen
    }


def _measured(systems: Sequence[Predictor], request: EvaluateRequest) -> tuple[Line, Tables]:
    """Measure models of another task: statistics by metric, or scores where there are none."""
    pipeline = pipeline_of(systems[0].folder.recipe)
    statistics = pipeline.part("evaluation", "statistics")
    found = [statistics(each, request) for each in systems] if statistics else []
    if not all(table for _, table in found) or not found:
        lines = [pipeline.evaluate(each, request) for each in systems]
        found = [(line, {n: Score(**s) for n, s in line["all"].items()}) for line in lines]
    head = {key: found[0][0][key] for key in HEADING}
    for (other, _), system in zip(found, systems, strict=True):
        if other["sha256"] != head["sha256"]:
            raise UsageError(
                f"{system.folder.path} is measured on {other['data']}, {systems[0].folder.path} on "
                f"{head['data']}: name the data of all as `data`."
            )
    shared = [name for name in found[0][1] if all(name in table for _, table in found)]
    return head, {name: [table[name] for _, table in found] for name in shared}


def _compare(name: str, table: Sequence[Any], samples: int, seed: int) -> dict[str, Any]:
    """Compare each system but the first with the first, by one metric."""
    signature = {"signature": table[0].signature}
    if not isinstance(table[0], Statistics):
        return signature | {"scores": [{"value": each.value} for each in table], "pairs": []}
    against = [bootstrap.compare(table[0], each, samples=samples, seed=seed) for each in table[1:]]
    scores = [each._asdict() for each in (against[0].a, *(each.b for each in against))]
    least = [max(each.p_bootstrap, each.p_randomisation) for each in against]
    sure, left = set(), len(against)
    for number in sorted(range(len(against)), key=least.__getitem__):  # Holm, step down
        if least[number] * left >= LEVEL:
            break
        sure.add(number)
        left -= 1
    pairs = [
        {
            "difference": each.difference._asdict(),
            "p_bootstrap": each.p_bootstrap,
            "p_randomisation": each.p_randomisation,
            "better": ("b" if (each.difference.value > 0) != lower_is_better(name) else "a")
            if number in sure
            else None,
        }
        for number, each in enumerate(against)
    ]
    two = {"a": scores[0], "b": scores[1], **pairs[0]} if len(pairs) == 1 else {}
    return signature | two | {"scores": scores, "pairs": pairs}


def comparison_page(comparison: dict[str, Any]) -> str:
    """Write the result of `compare` as a page: a table for each metric."""
    body = [f"<p>{html.escape(comparison['data'])}, {comparison['samples']:,} samples</p>"]
    for name, scores in comparison["all"].items():
        rows = []
        for number, (system, score) in enumerate(
            zip(comparison["systems"], scores["scores"], strict=True)
        ):
            cells = [html.escape(system), _written(score, "")]
            if number and scores["pairs"]:
                pair = scores["pairs"][number - 1]
                better = {"a": "the first is better", "b": "better than the first"}
                p = max(pair["p_bootstrap"], pair["p_randomisation"])
                verdict = better.get(pair["better"], "no clear difference")
                cells += [_written(pair["difference"], "+"), f"{p:.3f}", verdict]
            cells += [""] * (5 - len(cells))
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        head = ("system", "score (95%)", "against the first (95%)", "p", "")
        columns = "".join(f"<th>{each}</th>" for each in head)
        body += [
            f"<h2>{html.escape(name)}</h2><p>{html.escape(scores['signature'])}</p>",
            f"<table><tr>{columns}</tr>{''.join(rows)}</table>",
        ]
    return plain_page("Comparison", body)


def _written(score: dict[str, float], sign: str) -> str:
    between = f" ({score['low']:{sign}.2f} to {score['high']:{sign}.2f})" if "low" in score else ""
    return f"{score['value']:{sign}.2f}{between}"


def _system(name: str, loading: dict[str, Any]) -> Predictor | list[str]:
    try:
        return load(name, **loading)
    except NotFoundError as error:
        if Path(name).is_file():
            return read_lines(Path(name))[0]
        raise NotFoundError(f"{error} Nor is it a file of translations, one a line.") from None


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
