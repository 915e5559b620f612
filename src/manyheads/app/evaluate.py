"""Measuring a stored model, and logging what was measured."""

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from manyheads.app.alignment import choose_reader, measured, store
from manyheads.app.card import write_card
from manyheads.app.folder import ModelFolder, append_evaluation
from manyheads.app.language import Filler, Generator
from manyheads.app.paths import find_data, here, shipped
from manyheads.app.pictures import measure as measure_pictures
from manyheads.app.predict import Classifier, Predictor, Reconstruction, Translator
from manyheads.app.prepare import language_examples
from manyheads.app.recipe import (
    ClassifyRecipe,
    FillRecipe,
    GenerateRecipe,
    PictureData,
    ReconstructRecipe,
    SentenceData,
    TagRecipe,
    TranslateData,
    TranslateRecipe,
)
from manyheads.app.sentences import sentence_split, sentences
from manyheads.app.sources import corpus_split, image_split, read_corpus, read_images
from manyheads.app.tagging import Spacer
from manyheads.app.translations import Report, measure
from manyheads.data.monolingual import Sentences
from manyheads.data.splits import registered
from manyheads.data.text import Corpus
from manyheads.errors import NotFoundError, UsageError
from manyheads.models.vit import VitConfig
from manyheads.tasks.classify import Pixels
from manyheads.tasks.metrics import Score
from manyheads.tasks.reconstruct import distance
from manyheads.tasks.tag import Spacing
from manyheads.tasks.tag import measure as measure_spacing
from manyheads.tasks.tokenwise import measure as measure_tokens


def evaluate(
    predictor: Predictor,
    *,
    data: str | None = None,
    split: str = "valid",
    final: bool = False,
    report: Report | None = None,
) -> dict[str, Any]:
    """Measure a model on a split of its recipe or on other data, and log the result in its folder.

    Args:
        predictor: the loaded model.
        data: files instead of the recipe's own.
        split: "train", "valid" or "test" of the recipe.
        final: allow a test split, which is measured once, after everything was chosen.
        report: of a translator: what to measure besides the recipe's metrics.

    Returns:
        The logged line: data, split, registered name, metric, value, signature, final, ...

    Raises:
        UsageError: a test split without final; a report on a model that does not translate.
    """
    if isinstance(predictor, Translator):
        line = _evaluate_text(predictor, data, split, final, report or Report())
    elif report is not None and report != Report():
        raise UsageError(
            f"{predictor.folder.name} does not translate: other metrics, lengths, outputs and "
            "timing are measured of translators only."
        )
    elif isinstance(predictor, Generator | Filler):
        line = _evaluate_language(predictor, data, split, final)
    elif isinstance(predictor, Spacer):
        line = _evaluate_spacing(predictor, data, split, final)
    elif isinstance(predictor, Reconstruction):
        line = _evaluate_reconstruction(predictor, data, split, final)
    else:
        line = _evaluate_images(predictor, data, split, final)
    return log(predictor.folder, line)


def log(folder: ModelFolder, line: dict[str, Any]) -> dict[str, Any]:
    """Date a measurement and log it with the model; a shipped model's folder stays as it is."""
    line["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    if not is_shipped(folder):
        try:
            append_evaluation(folder.path, line)
            write_card(folder)
        except OSError as error:  # it may lie where users cannot write
            warnings.warn(f"The result was not logged with the model: {error}", stacklevel=3)
    return line


def is_shipped(folder: ModelFolder) -> bool:
    """Say whether a model is the package's own, rather than its user's."""
    own = (manifest.parent.resolve() for manifest in shipped("pretrained").values())
    return folder.path.resolve() in own


def _evaluate_text(
    translator: Translator, data: str | None, split: str, final: bool, report: Report
) -> dict[str, Any]:
    recipe = translator.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    corpus, head = pairs(recipe, data, split, final)
    outputs, scores, more = measure(translator, corpus, report)
    if report.alignment:
        named = recipe.data.valid if data is None and split == "valid" else None
        more["alignment"] = _alignment(translator, corpus, outputs, named)
    return head | scored(scores) | more


def _alignment(
    translator: Translator, corpus: Corpus, outputs: Sequence[str], named: str | None
) -> dict[str, Any] | None:
    """Measure the alignment of words; on validation data, choose the attention to read it from.

    A shipped model keeps what it came with.
    """
    folder = translator.folder
    if named is not None and not is_shipped(folder):
        entry = choose_reader(translator, corpus, named)
        if entry is not None:
            translator.alignment = entry.chosen
            store(folder, entry.model_dump())
    return measured(translator, corpus, outputs, translator.alignment)


def pairs(
    recipe: TranslateRecipe,
    data: str | None,
    split: str,
    final: bool,
    *,
    others: Sequence[TranslateRecipe] = (),
) -> tuple[Corpus, dict[str, Any]]:
    """Read a split of a recipe or other data, and the beginning of a line about them.

    Raises:
        UsageError: a test split, of the recipe or one of the others, without final.
    """
    languages = ("", f".{recipe.data.source}", f".{recipe.data.target}")
    if data is None:
        corpus = corpus_split(split, recipe.data)
    else:
        corpus = read_corpus(here(data, languages), recipe.data)
    test = corpus.test or any(
        _is_recipes_test(data, each.data, languages) for each in (recipe, *others)
    )
    return corpus, heading(
        corpus.origin, corpus.hashes, data, split, final, named=recipe.data, test=test
    )


def _evaluate_images(
    classifier: Classifier, data: str | None, split: str, final: bool
) -> dict[str, Any]:
    recipe = classifier.folder.recipe
    assert isinstance(recipe, ClassifyRecipe)
    images = (
        image_split(split, recipe) if data is None else read_images(here(data), recipe)
    ).relabel(classifier.labels)
    test = _is_recipes_test(data, recipe.data)
    head = heading(images.origin, images.hashes, data, split, final, named=recipe.data, test=test)
    measured = measure_pictures(classifier, images)
    return head | scored(measured.scores) | measured.details


def _evaluate_reconstruction(
    predictor: Reconstruction, data: str | None, split: str, final: bool
) -> dict[str, Any]:
    recipe = predictor.folder.recipe
    assert isinstance(recipe, ReconstructRecipe)
    config = recipe.config()
    assert isinstance(config, VitConfig)
    images = image_split(split, recipe) if data is None else read_images(here(data), recipe)
    test = _is_recipes_test(data, recipe.data)
    head = heading(images.origin, images.hashes, data, split, final, named=recipe.data, test=test)
    pixels = Pixels(images, predictor.preprocessing)
    found = distance(predictor.model, pixels, config.patch, recipe.train.masked)
    signature = f"mean L1 distance on hidden pixels, normalised, {recipe.train.masked:.0%} hidden"
    return head | {"pictures": len(images)} | scored({"loss": Score(found, signature)})


def _evaluate_language(
    predictor: Generator | Filler, data: str | None, split: str, final: bool
) -> dict[str, Any]:
    recipe = predictor.folder.recipe
    assert isinstance(recipe, GenerateRecipe | FillRecipe)
    lines, head = _sentences(recipe.data, data, split, final)
    examples = language_examples(recipe, lines, predictor.tokenizer)
    measured = measure_tokens(predictor.model, examples, recipe.train.max_tokens)
    each = f"per {'token' if isinstance(recipe, GenerateRecipe) else 'hidden token'}"
    vocabulary = f"vocabulary {len(predictor.tokenizer):,}"
    scores = {
        "perplexity": Score(measured["perplexity"], f"{each}, {vocabulary}"),
        "loss": Score(measured["loss"], f"mean cross-entropy {each}, natural logarithm"),
        "accuracy": Score(measured["accuracy"], f"share right {each}"),
    }
    return head | {"lines": len(lines)} | scored(scores)


def _evaluate_spacing(spacer: Spacer, data: str | None, split: str, final: bool) -> dict[str, Any]:
    recipe = spacer.folder.recipe
    assert isinstance(recipe, TagRecipe)
    lines, head = _sentences(recipe.data, data, split, final)
    examples = Spacing(lines, spacer.characters)
    measured = measure_spacing(spacer.model, examples, recipe.train.max_tokens)
    scores = {
        "f1": Score(measured["f1"], "of the spaces, all lines together"),
        "exact": Score(measured["exact"], "share of lines without a mistake"),
        "accuracy": Score(measured["accuracy"], "share of characters"),
        "loss": Score(measured["loss"], "mean cross-entropy per character, natural logarithm"),
    }
    return head | {"lines": len(lines)} | scored(scores)


def _sentences(
    named: SentenceData, data: str | None, split: str, final: bool
) -> tuple[Sentences, dict[str, Any]]:
    lines = sentence_split(split, named) if data is None else sentences(here(data), named)
    test = _is_recipes_test(data, named)
    return lines, heading(lines.origin, lines.hashes, data, split, final, named=named, test=test)


def _is_recipes_test(
    data: str | None,
    named: TranslateData | PictureData | SentenceData,
    suffixes: Sequence[str] = ("",),
) -> bool:
    """Say whether other data are the recipe's own test split by another name."""
    if data is None or named.test is None:
        return False
    if data == named.test:
        return True
    try:
        given, test = (
            [path.resolve() for path in find_data(name, named.root, suffixes)]
            for name in (here(data, suffixes), named.test)
        )
        return given == test
    except NotFoundError:  # generated, or not there: nothing to compare
        return False


def heading(
    origin: str,
    hashes: Sequence[str],
    data: str | None,
    split: str,
    final: bool,
    *,
    named: object = None,
    test: bool = False,
) -> dict[str, Any]:
    """Say what is measured on, for the log: a split as the [data] table `named` calls it.

    Where its files lie on this machine would mean nothing later.

    Raises:
        UsageError: a test split without final.
    """
    known = registered(hashes)
    test = test or any(entry.test for entry in known) or (data is None and split == "test")
    if test and not final:
        raise UsageError(
            f"{origin} is a test split: it is measured once, when everything has been chosen by "
            "validation. If that is so now, say --final; to choose, use --split valid."
        )
    return {
        "data": (_name(named, split) or origin) if data is None else data,
        "split": split if data is None else None,
        "registered": [entry.name for entry in known],
        "sha256": list(hashes),
        "final": test,
    }


def _name(named: object, split: str) -> str | None:
    """Look up what a [data] table calls a split; held-out pictures have no name of their own."""
    name: str | None = getattr(named, split, None)
    if name is None and split == "valid" and isinstance(named, PictureData):
        return f"{named.hold_out:,} pictures of {named.train}"
    return name


def scored(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Write scores for the log; the first is the headline."""
    (metric, first), *_ = scores.items()
    return {
        "metric": metric,
        "value": first.value,
        "signature": first.signature,
        "all": {name: {"value": s.value, "signature": s.signature} for name, s in scores.items()},
    }
