"""Measuring translations: scores by length and group, signs of trouble, time; comparing engines."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch

from manyheads.asks.evaluate_request import EvaluateRequest, TextMetric
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.heads_request import HeadsRequest
from manyheads.data.even_sample import evenly_spaced, limited
from manyheads.data.text.corpus import Corpus, read_references
from manyheads.data.text.lines import ending
from manyheads.engines.engine import engine_name
from manyheads.engines.engine_parity import Parity
from manyheads.errors import UsageError
from manyheads.generation.output_monitor import OutputMonitor, signs
from manyheads.generation.special_ids import special_ids
from manyheads.generation.token_scores import largest_logit, token_log_probabilities
from manyheads.measure.bootstrap import bootstrap
from manyheads.measure.head_worth import Scorer
from manyheads.measure.outputs import OutputRow, sentence_scores
from manyheads.measure.parity_inputs import compare_engines, data_to_compare
from manyheads.measure.score import ROWS, Line, heading, is_test, refuse_images, scored
from manyheads.measure.text_metrics import TEXT_METRICS, Score, Statistics
from manyheads.project.domain import store_domain
from manyheads.project.folder import store_entry
from manyheads.project.paths import endings, find_data, here, split_selection
from manyheads.recipe_data.named_splits import named
from manyheads.recipe_data.pair_splits import corpus_split, pairs_of, read_corpus
from manyheads.recipe_data.text_data import PairData
from manyheads.tasks.translate.domain_limits import set_domain, unusual_share
from manyheads.tasks.translate.length_bins import length_bins
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.tasks.translate.word_alignment import choose_reader, measured, reads_source

ALONE = 100  # sentences translated one at a time to measure how long an answer takes
BLEU = 0.3  # points of BLEU that may be lost; of other metrics those of `Parity.allowed`
SCORED = 100  # pairs whose tokens are scored: every token of each is compared


def corpus_to_measure(
    data: PairData, request: EvaluateRequest, *, others: Sequence[PairData] = ()
) -> tuple[Corpus, Line]:
    """Read the corpus of a request, and the beginning of the line about it.

    Raises:
        UsageError: a test split, of the recipe or one of the others, without final.
    """
    languages = ("", f".{data.source}", f".{data.target}")
    name = request.data or data.split_name(request.split) or ""
    file, _ = split_selection(name)
    if data.columns == (None, None) and ending(file) == ".tsv":  # may have more, such as a group
        data = data.model_copy(update={"source_column": 1, "target_column": 2})
    if request.data is None:
        corpus = corpus_split(request.split, data)
    else:
        corpus = read_corpus(here(request.data, languages), data)
    if request.group is not None:
        corpus = replace(corpus, groups=groups_of(corpus, data, request))
    test = corpus.test or any(is_test(request.data, each, languages) for each in others)
    head = heading(corpus.origin, corpus.hashes, request, data, test=test, suffixes=languages)
    if request.references is not None:
        (path,) = find_data(here(request.references), data.root)
        references, digest = read_references(path, corpus.source)
        further = [
            [text for text in texts if text != target]
            for texts, target in zip(references, corpus.target, strict=True)
        ]
        corpus = replace(corpus, others=further)
        head |= {"references": request.references, "references_sha256": digest}
    return limited(corpus, request.limit), head


def groups_of(corpus: Corpus, data: PairData, request: EvaluateRequest) -> list[str]:
    """Read the group of each pair from another column of the same table.

    Raises:
        UsageError: the corpus is no table.
        DataError: the table has no such column.
    """
    file, _ = split_selection(corpus.origin)
    if corpus.groups is not None or endings(file, data.source, data.target) != ("",):
        raise UsageError(
            f"{corpus.origin} is not a table, so no column says what group a pair is of: leave "
            "`group` out."
        )
    group = request.group or ""
    column = int(group) if group.isdigit() else group
    name = named(request.split, data) if request.data is None else here(request.data)
    first = data.columns[0] or (1 if group.isdigit() else None)  # of a table without names
    table = data.model_copy(update={"source_column": first, "target_column": column})
    return [pair.target for pair in pairs_of(name, table)]


def measure(
    translator: Translator,
    corpus: Corpus,
    metrics: Sequence[TextMetric],
    request: EvaluateRequest,
    chosen_on: str | None = None,
) -> tuple[list[str], dict[str, Score], Line]:
    """Translate a corpus; return outputs, scores, and the rest of the line for the log.

    If `chosen_on` names validation data, what is usual for the model is set by them.
    """
    target = translator.target
    names = dict.fromkeys(metrics)
    for name in names:
        TEXT_METRICS[name](["text"], ["text"], target)  # a missing package is found at once
    if request.timing:
        translator.translate(corpus.source[:1])  # the first call sets things up
    began = time.perf_counter()
    translations = [best[0] for best in translator.translate(corpus.source)]
    seconds = time.perf_counter() - began
    outputs = [each.text for each in translations]
    counted: dict[str, Statistics] = {
        name: TEXT_METRICS[name].statistics(outputs, corpus.references, target) for name in names
    }
    found = {name: bootstrap(each) for name, each in counted.items()}
    scores = {name: Score(found[name].value, each.signature) for name, each in counted.items()}
    line: dict[str, Any] = {
        "pairs": len(corpus),
        "beams": translator.decode.beams,
        "intervals": {name: [each.low, each.high] for name, each in found.items()},
    }
    if request.outputs is not None:
        good = sentence_scores(outputs, corpus.references, target)
        line[ROWS] = [
            OutputRow(
                input=source,
                truth=truth,
                answer=each.text,
                score=score,
                right=each.text in truth,
                probability=each.mean_probability,
            )
            for source, truth, each, score in zip(
                corpus.source, corpus.references, translations, good, strict=True
            )
        ]
    if corpus.groups is not None:
        first = (*request.text_metrics, *metrics)[0]
        line["groups"] = by_group(corpus.groups, counted[first])
    if request.by_length:
        line["by_length"] = by_length(corpus.source, translator.source, counted)
    if request.timing:
        line["timing"] = {
            "sentences_per_second": len(translations) / seconds,
            "tokens_per_second": sum(len(each.tokens) for each in translations) / seconds,
            **latency(translator, corpus.source),
            "threads": torch.get_num_threads(),
            "device": next(translator.model.parameters()).device.type,
        }
    if chosen_on is not None and (
        domain := set_domain(translator, corpus, translations, chosen_on)
    ):
        translator.domain = domain
        store_domain(translator.folder, domain)
    if (unusual := unusual_share(translator, corpus, translations)) is not None:
        line["unusual"] = unusual
    signed = signs(corpus.source, outputs, corpus.target)
    line["signs"] = signed._asdict()
    if remarks := OutputMonitor(corpus.source, corpus.target).remarks(signed):
        line["remarks"] = list(remarks.values())
    return outputs, scores, line


def by_group(groups: Sequence[str], counted: Statistics) -> dict[str, float]:
    """Score each kind of pair by one metric."""
    members: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    return {group: _score(counted, chosen) for group, chosen in members.items()}


def by_length(sources: Sequence[str], language: str, counted: Mapping[str, Statistics]) -> Line:
    """Score sentences of like length by every metric."""
    unit, bins = length_bins(sources, language)
    return {
        "unit": unit,
        "bins": [
            {"first": each.first, "last": each.last, "pairs": len(each.members)}
            | {name: _score(statistics, each.members) for name, statistics in counted.items()}
            for each in bins
        ],
    }


def latency(translator: Translator, sources: Sequence[str]) -> dict[str, float]:
    """Translate sentences from all over a corpus one at a time."""
    chosen = evenly_spaced(len(sources), ALONE)
    milliseconds = []
    for index in chosen:
        began = time.perf_counter()
        translator.translate([sources[index]])
        milliseconds.append(1000 * (time.perf_counter() - began))
    middle, slow = map(float, np.quantile(milliseconds, [0.5, 0.95]))
    return {"alone": len(chosen), "median_milliseconds": middle, "p95_milliseconds": slow}


def _score(counted: Statistics, chosen: Sequence[int]) -> float:
    """Score some of the sentences whose statistics were counted."""
    return counted.value(counted.rows[chosen].sum(axis=0))


def evaluate(predictor: Translator, request: EvaluateRequest) -> dict[str, Any]:
    """Score translations; on validation data, set what is usual, and the head that aligns."""
    refuse_images(predictor.folder.name, request)
    recipe = cast(TranslateRecipe, predictor.folder.recipe)
    corpus, head = corpus_to_measure(recipe.data, request)
    metrics = [*recipe.evaluate.metrics, *request.text_metrics]
    valid = request.data is None and request.split == "valid"
    # What is usual is what torch answers, whatever runs the model later.
    keeps = not predictor.folder.shipped and engine_name(predictor.engine) == "torch"
    named = recipe.data.valid if valid and keeps else None
    outputs, scores, more = measure(predictor, corpus, metrics, request, named)
    if request.alignment:
        # A shipped model keeps the head it came with.
        if named is not None and (entry := choose_reader(predictor, corpus, named)) is not None:
            predictor.alignment = entry.chosen
            store_entry(predictor.folder, "alignment", entry.model_dump())
        more["alignment"] = measured(predictor, corpus, outputs, predictor.alignment)
    return head | scored(scores) | more


def after_training(predictor: Translator) -> EvaluateRequest:
    """Measure the alignment too, if the model attends to the source."""
    return EvaluateRequest(alignment=reads_source(predictor.model))


def scorer(translator: Translator, request: HeadsRequest) -> Scorer:
    """Translate greedily, and score by the recipe's first metric."""
    recipe = cast(TranslateRecipe, translator.folder.recipe)
    asked = EvaluateRequest(data=request.data, remote=request.remote, split=request.split)
    corpus, head = corpus_to_measure(recipe.data, asked)
    chosen, metric = limited(corpus, request.limit), recipe.evaluate.metrics[0]

    def score() -> Statistics:
        outputs = [best.text for best, *_ in translator.translate(chosen.source, beams=1)]
        return TEXT_METRICS[metric].statistics(outputs, chosen.references, translator.target)

    return Scorer(f"{metric} (greedy)", head["data"], len(chosen), score)


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
    few = slice(None, None, max(1, len(sources) // SCORED))

    def difference(ours: list[str], _: list[str]) -> float:
        outputs = ours if targets is None else targets
        return _difference(reference, exported, sources[few], outputs[few])

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
    read = partial(corpus_to_measure, data)
    corpus, head = data_to_compare(read, request, "pairs", or_texts=True)
    corpus = limited(corpus, request.limit)
    return head["data"], corpus.source, corpus.target


def _difference(
    reference: Translator, exported: Translator, sources: Sequence[str], outputs: Sequence[str]
) -> float:
    """Return the largest difference between scores of the same tokens, by the largest logit.

    Not by the largest score: of outputs that are certain, all scores are near 0.
    """
    end = special_ids(reference.model).end
    encoded = reference.tokenizers.source.encode([reference.read_source(t).text for t in sources])
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
