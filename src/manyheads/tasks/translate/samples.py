"""Pairs that the doctor looks at."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, cast

from torch import nn

from manyheads.data.checks.dependence import Sides, text_features
from manyheads.data.text.corpus import Corpus, StreamedCorpus
from manyheads.doctor import text_leakage
from manyheads.doctor.finding import cut
from manyheads.doctor.output_habits import Outputs, habits, length, one_sentence
from manyheads.doctor.run_batches import TEXTS, Examined, Learned, Samples, mean_loss, random_sample
from manyheads.doctor.run_inspection import RunInspection
from manyheads.generation.output_monitor import PAIRS
from manyheads.generation.special_ids import SpecialIds
from manyheads.generation.text_decoding import translate
from manyheads.recipe_data.pair_splits import corpus_split, training_corpus
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.tasks.translate.task import TranslateTask
from manyheads.train.training_task import Task

# Nats a token that the right source gains over a wrong one: 5% of perplexity. Shipped translators
# gain 3.4 to 7.1.
SOURCE_GAIN = 0.05
HEART_GAIN = 0.5


@dataclass(frozen=True, kw_only=True)
class PairSamples(Samples):
    """Of a translator, which is compared with itself reading the source of another pair."""

    corpora: tuple[Corpus | StreamedCorpus, Corpus]
    few: tuple[Corpus, Corpus]
    mismatched: tuple[Task[Any], Task[Any]]  # every target with the source of another

    baseline: ClassVar[str] = "with the source of another pair"

    def blind_losses(self, model: nn.Module) -> list[float]:
        """Return the losses with the source of another pair."""
        return [mean_loss(model, task) for task in self.mismatched]

    def nothing_learned(self, learned: Learned) -> bool:
        """Tell whether the right source helps no more than a wrong one."""
        return max(learned.gains) < SOURCE_GAIN

    def memorised(self, learned: Learned) -> bool:
        """Tell whether the source helps in training data only."""
        seen, new = learned.gains
        return seen >= HEART_GAIN and new < SOURCE_GAIN

    def examples(self) -> list[str]:
        """Show pairs."""
        return [f"{cut(s, 50)} → {cut(t, 50)}" for s, t in list(self.few[0].pairs())[:3]]

    def leaks(self) -> Examined:
        """Look for validation pairs in the training data, and translations in their sources."""
        findings = text_leakage.pairs_seen_before(*self.corpora)
        return self.leaks_in_texts(*findings, *text_leakage.target_in_source(self.few[0]))


def some_pairs(corpus: Corpus | StreamedCorpus) -> Corpus:
    """Take some pairs; of a corpus on disk, one of each thousand from the front."""
    if isinstance(corpus, Corpus):
        return corpus.select(random_sample(len(corpus), TEXTS))
    found = list(islice(enumerate(corpus.pairs(), 1), 0, 1000 * TEXTS, 1000))
    numbers, pairs = [number for number, _ in found], [pair for _, pair in found]
    return Corpus([s for s, _ in pairs], [t for _, t in pairs], corpus.origin, lines=numbers)


def sides(task: TranslateTask) -> Sides:
    """Compare words and lengths of some training pairs."""
    few = some_pairs(task.train)
    features = text_features(few.source), text_features(few.target)
    return Sides(("sources", "targets"), features, (few.source, few.target))


def mismatched(pairs: Corpus) -> Corpus:
    """Give every target the source of another pair, half the sample away."""
    half = len(pairs) // 2
    return replace(pairs, source=[*pairs.source[half:], *pairs.source[:half]])


def samples(recipe: TranslateRecipe, run: RunInspection) -> PairSamples:
    """Take some pairs of both splits, and the same with the sources of other pairs."""
    corpora = training_corpus(recipe.data), corpus_split("valid", recipe.data)
    few = some_pairs(corpora[0]), some_pairs(corpora[1])
    config = replace(recipe.train, label_smoothing=0.0, r_drop=0.0)
    tokenizers = run.tokenizers()

    def task(pairs: Corpus) -> TranslateTask:
        return TranslateTask(
            pairs,
            pairs,
            tokenizers,
            config,
            recipe.evaluate,
            seed=recipe.seed,
            ids=cast(SpecialIds, recipe.config()),
            language=recipe.data.target,
        )

    def examine(model: nn.Module, step: int, finished: bool) -> Examined:
        """Translate the sample of the validation data as the recipe searches."""
        found = translate(model, tokenizers, few[1].source, recipe.decode)
        written = Outputs(few[1].source, [best[0].text for best in found], few[1].target)
        findings = [
            *one_sentence(written, recipe, step),
            *habits(written, recipe, step),
            *length(written, recipe.decode, step, finished=finished),
        ]
        count = len(written.outputs)
        if count < PAIRS:
            fewer = f"habits of the translations: {count} validation pairs are fewer than {PAIRS}"
            return Examined(findings, not_looked_at=[fewer])
        looked_at = (
            f"translations: {count} of the validation data, beams = {recipe.decode.beams}: "
            "copies, loops, empty or equal ones, script, length"
        )
        return Examined(findings, [looked_at])

    return PairSamples(
        train=task(few[0]),
        valid=task(few[1]),
        sizes=(len(few[0]), len(few[1])),
        validation=len(corpora[1]),
        corpora=corpora,
        few=few,
        mismatched=(task(mismatched(few[0])), task(mismatched(few[1]))),
        write=examine,
    )
