"""Two systems on the same sentences: is one better, or was it luck?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from manyheads.app.evaluate import heading, log, pairs, scored
from manyheads.app.paths import find_data, here
from manyheads.app.predict import Translator, load
from manyheads.app.recipe import TranslateRecipe
from manyheads.app.translations import Report, measure
from manyheads.data.lines import ending
from manyheads.data.text import Corpus, read_lines
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.tasks import bootstrap
from manyheads.tasks.bootstrap import SAMPLES, SEED
from manyheads.tasks.metrics import TEXT_METRICS, TextMetric
from manyheads.train.task import lower_is_better

LEVEL = 0.05  # a difference whose p-values are not below it is called none
FOR_FILES: tuple[TextMetric, ...] = ("bleu", "chrf")  # where no recipe names metrics


class References(NamedTuple):
    """What systems are measured against."""

    corpus: Corpus
    language: str
    head: dict[str, Any]


def compare(
    a: str,
    b: str,
    *,
    data: str | None = None,
    split: str = "valid",
    final: bool = False,
    metrics: Sequence[TextMetric] = (),
    samples: int = SAMPLES,
    seed: int = SEED,
) -> dict[str, Any]:
    """Compare two systems by resampling their sentences; log what models scored in their folders.

    Args:
        a: a model (name or folder), or a file of translations, one a line.
        b: likewise.
        data: files instead of those of the first model's recipe; if neither is a model, the file of
            the references.
        split: "train", "valid" or "test" of that recipe.
        final: allow a test split.
        metrics: besides those of the recipes.
        samples: how many samples are drawn.
        seed: of the samples.

    Returns:
        For each metric both scores and their difference with 95% intervals, two p-values, and which
        is better: "a", "b" or None.

    Raises:
        UsageError: a test split without final; systems of different languages; no references.
        DataError: a file has another number of lines than there are references.
    """
    systems = [_system(name) for name in (a, b)]
    recipes = [_recipe(each) for each in systems if isinstance(each, Translator)]
    names = tuple(
        dict.fromkeys(
            [*(name for recipe in recipes for name in recipe.evaluate.metrics), *metrics]
            if recipes
            else [*FOR_FILES, *metrics]
        )
    )
    corpus, language, head = _references(recipes, data, split, final)
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
    found = bootstrap.compare(*statistics, samples=samples, seed=seed)
    sure = max(found.p_bootstrap, found.p_randomisation) < LEVEL
    b_better = (found.difference.value > 0) != lower_is_better(name)
    return {
        "signature": statistics[0].signature,
        "a": found.a._asdict(),
        "b": found.b._asdict(),
        "difference": found.difference._asdict(),
        "p_bootstrap": found.p_bootstrap,
        "p_randomisation": found.p_randomisation,
        "better": ("b" if b_better else "a") if sure else None,
    }


def _system(name: str) -> Translator | list[str]:
    try:
        model = load(name)
    except NotFoundError as error:
        if Path(name).is_file():
            return read_lines(Path(name))[0]
        raise NotFoundError(f"{error} Nor is it a file of translations, one a line.") from None
    if not isinstance(model, Translator):
        raise UsageError(f"{name} does not translate: only translations are compared.")
    return model


def _recipe(translator: Translator) -> TranslateRecipe:
    recipe = translator.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    return recipe


def _references(
    recipes: Sequence[TranslateRecipe], data: str | None, split: str, final: bool
) -> References:
    if recipes:
        directions = {f"{recipe.data.source}-{recipe.data.target}" for recipe in recipes}
        if len(directions) > 1:
            raise UsageError(
                f"The models translate {' and '.join(sorted(directions))}: compare models of one "
                "pair of languages."
            )
        corpus, head = pairs(recipes[0], data, split, final, others=recipes[1:])
        return References(corpus, recipes[0].data.target, head)
    if data is None:
        raise UsageError(
            "Neither is a model whose recipe names data: give the file of the references with "
            "--data, one a line, its ending the language (val.de)."
        )
    if "*" in data:
        raise UsageError(f"{data!r} is a pattern: give the name of one file of references.")
    (path,) = find_data(here(data), None)
    lines, digest = read_lines(path)
    head = heading(str(path), [digest], data, split, final)
    return References(Corpus(lines, lines, str(path)), ending(path).removeprefix("."), head)


def _outputs(
    system: Translator | list[str],
    corpus: Corpus,
    head: dict[str, Any],
    metrics: tuple[TextMetric, ...],
) -> list[str]:
    if not isinstance(system, Translator):
        return system
    outputs, scores, more = measure(system, corpus, Report(metrics=metrics))
    log(system.folder, head | scored(scores) | more)
    return outputs
