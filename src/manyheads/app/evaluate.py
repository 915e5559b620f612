"""Measuring a stored model, and logging what was measured."""

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from manyheads.app.card import write_card
from manyheads.app.folder import append_evaluation
from manyheads.app.paths import find_data, here
from manyheads.app.predict import Classifier, Translator
from manyheads.app.recipe import (
    ClassifyData,
    ClassifyRecipe,
    TranslateData,
    TranslateRecipe,
)
from manyheads.app.sources import corpus_split, image_split, read_corpus, read_images
from manyheads.data.splits import registered
from manyheads.data.text import Corpus
from manyheads.errors import NotFoundError, UsageError
from manyheads.tasks.classify import Pixels, score
from manyheads.tasks.metrics import TEXT_METRICS, Score


def evaluate(
    predictor: Translator | Classifier,
    *,
    data: str | None = None,
    split: str = "valid",
    final: bool = False,
) -> dict[str, Any]:
    """Measure a model on a split of its recipe or on other data, and log the result in its folder.

    Args:
        predictor: the loaded model.
        data: files instead of the recipe's own.
        split: "train", "valid" or "test" of the recipe.
        final: allow a test split, which is measured once, after everything was chosen.

    Returns:
        The logged line: data, split, registered name, metric, value, signature, final, ...

    Raises:
        UsageError: a test split without final.
    """
    if isinstance(predictor, Translator):
        line = _evaluate_text(predictor, data, split, final)
    else:
        line = _evaluate_images(predictor, data, split, final)
    line["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        append_evaluation(predictor.folder.path, line)
        write_card(predictor.folder)
    except OSError as error:  # a shipped model may lie where users cannot write
        warnings.warn(f"The result was not logged with the model: {error}", stacklevel=2)
    return line


def _evaluate_text(
    translator: Translator, data: str | None, split: str, final: bool
) -> dict[str, Any]:
    recipe = translator.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    languages = ("", f".{recipe.data.source}", f".{recipe.data.target}")
    if data is None:
        corpus = corpus_split(split, recipe.data)
    else:
        corpus = read_corpus(here(data, languages), recipe.data)
    test = corpus.test or _is_recipes_test(data, recipe.data, languages)
    head = _heading(corpus.origin, corpus.hashes, data, split, final, test=test)
    outputs = translator(corpus.source)
    scores: dict[str, Score] = {
        name: TEXT_METRICS[name](outputs, corpus.target) for name in recipe.evaluate.metrics
    }
    line = head | {"pairs": len(corpus), "beams": recipe.decode.beams} | _scores(scores)
    if corpus.groups is not None:
        line["groups"] = _by_group(corpus, outputs, recipe)
    return line


def _by_group(corpus: Corpus, outputs: Sequence[str], recipe: TranslateRecipe) -> dict[str, float]:
    assert corpus.groups is not None
    metric = TEXT_METRICS[recipe.evaluate.metrics[0]]
    members: dict[str, list[int]] = {}
    for index, group in enumerate(corpus.groups):
        members.setdefault(group, []).append(index)
    return {
        group: metric([outputs[i] for i in chosen], [corpus.target[i] for i in chosen]).value
        for group, chosen in members.items()
    }


def _evaluate_images(
    classifier: Classifier, data: str | None, split: str, final: bool
) -> dict[str, Any]:
    recipe = classifier.folder.recipe
    assert isinstance(recipe, ClassifyRecipe)
    images = (
        image_split(split, recipe.data) if data is None else read_images(here(data), recipe.data)
    ).relabel(classifier.labels)
    test = _is_recipes_test(data, recipe.data)
    head = _heading(images.origin, images.hashes, data, split, final, test=test)
    measured = score(classifier.model, Pixels(images, classifier.preprocessing))
    scores = {
        "accuracy": Score(measured["accuracy"], "share of pictures whose likeliest class is right"),
        "loss": Score(measured["loss"], "mean cross-entropy, natural logarithm"),
    }
    return head | {"pictures": len(images)} | _scores(scores)


def _is_recipes_test(
    data: str | None, named: TranslateData | ClassifyData, suffixes: Sequence[str] = ("",)
) -> bool:
    """Say whether other data are the recipe's own test split by another name."""
    if data is None or named.test is None:
        return False
    try:
        given, test = (
            [path.absolute() for path in find_data(name, named.root, suffixes)]
            for name in (here(data, suffixes), named.test)
        )
        return given == test
    except NotFoundError:  # generated, or not there: nothing to compare
        return False


def _heading(
    origin: str,
    hashes: Sequence[str],
    data: str | None,
    split: str,
    final: bool,
    *,
    test: bool = False,
) -> dict[str, Any]:
    known = registered(hashes)
    test = test or any(entry.test for entry in known) or (data is None and split == "test")
    if test and not final:
        raise UsageError(
            f"{origin} is a test split: it is measured once, when everything has been chosen by "
            "validation. If that is so now, say --final; to choose, use --split valid."
        )
    return {
        "data": origin if data is None else data,
        "split": split if data is None else None,
        "registered": [entry.name for entry in known],
        "sha256": list(hashes),
        "final": test,
    }


def _scores(scores: Mapping[str, Score]) -> dict[str, Any]:
    (metric, first), *_ = scores.items()
    return {
        "metric": metric,
        "value": first.value,
        "signature": first.signature,
        "all": {name: {"value": s.value, "signature": s.signature} for name, s in scores.items()},
    }
