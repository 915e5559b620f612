"""From a recipe to what a run needs before its model."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from manyheads.data.even_sample import limited
from manyheads.data.text.corpus import Corpus, StreamedCorpus
from manyheads.data.tokenizers.token_store import TokenStore, encode_on_disk
from manyheads.fit.inputs import digest, has_token_limit, refuse_longer
from manyheads.generation.special_ids import SpecialIds
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.folder import CACHE, write_vocabularies
from manyheads.project.sentencepiece_files import (
    Vocabularies,
    learn_vocabularies,
    load_vocabularies,
    sizes,
    tokenizers,
)
from manyheads.recipe_data.named_splits import reject_test_splits
from manyheads.recipe_data.pair_splits import corpus_split, training_corpus, with_joined_pairs
from manyheads.recipe_data.text_data import PairData
from manyheads.tasks.translate.initialize import start_vocabularies
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.tasks.translate.task import TranslateTask
from manyheads.train.ranks import on_first, rank_and_world


def prepare(recipe: TranslateRecipe, out: Path, say: Say) -> Prepared:
    """Read the corpora; learn the vocabulary, or take that of the run or of [start]."""
    for name in recipe.evaluate.metrics:
        # A missing package is found before training.
        TEXT_METRICS[name](["text"], ["text"], recipe.data.target)
    corpus, valid = training_corpus(recipe.data, say), corpus_split("valid", recipe.data)
    reject_test_splits(corpus, valid)
    valid = limited(valid, recipe.evaluate.limit)
    corpus = with_joined_pairs(corpus, recipe.augment.joined, recipe.seed)
    vocabularies = load_vocabularies(out)
    if not vocabularies:
        # A whole pass over a large corpus, for the rank that learns from it.
        first = rank_and_world()[0] == 0
        sources, targets = corpus.sample(recipe.seed) if first else ([], [])
        if recipe.start is not None and recipe.start.vocabulary == "theirs":
            say("taking over the vocabulary of the models to start from")
            vocabularies = start_vocabularies(
                recipe, recipe.start, recipe.tokenizer, sources, targets
            )
        else:
            kind = "a vocabulary" if recipe.tokenizer.shared else "two vocabularies"
            which = "" if isinstance(corpus, Corpus) else "a sample of "
            say(f"learning {kind} from {which}{len(sources):,} pairs")
            vocabularies = learn_vocabularies(sources, targets, recipe.tokenizer)
    config = recipe.config(**sizes(vocabularies))
    texts = recipe.tokenizer.sampling > 0 or recipe.augment.changes_pairs
    task = TranslateTask(
        corpus,
        valid,
        tokenizers(vocabularies),
        recipe.train,
        recipe.evaluate,
        seed=recipe.seed,
        ids=cast(SpecialIds, config),
        sampling=recipe.tokenizer.sampling,
        noise=recipe.augment,
        store=encoded_corpus(corpus, vocabularies, recipe.data, out / CACHE, say, texts=texts),
        language=recipe.data.target,
    )
    if task.left_out:
        say(
            f"left out {task.left_out:,} of {len(task.store):,} pairs, longer than "
            f"train.max_length = {recipe.train.max_length} tokens"
        )
    if has_token_limit(config):  # or the validation data would be encoded for nothing
        encoded = tokenizers(vocabularies).source.encode(valid.source)
        longest = max(len(tokens) + 1 for tokens in encoded)  # with the end
        refuse_longer(config, longest, *(side.max() for side in task.lengths))
    return Prepared(
        task,
        config,
        lambda folder: write_vocabularies(folder, vocabularies),
        {"data": digest(*corpus.hashes, *valid.hashes)},
    )


def encoded_corpus(
    corpus: Corpus | StreamedCorpus,
    vocabularies: Vocabularies,
    data: PairData,
    cache: Path,
    say: Callable[[str], None],
    *,
    texts: bool,
) -> TokenStore | None:
    """Encode a large corpus into files, or find them; None for one that fits into memory.

    `texts` keeps the texts too, for segmentations and noise that are drawn in each epoch.
    """
    if isinstance(corpus, Corpus):
        return None
    say(f"encoding {corpus.origin} into {cache}")

    def pairs() -> Iterator[tuple[str, str]]:
        for number, pair in enumerate(corpus.pairs(), 1):
            yield pair
            if number % 1_000_000 == 0:
                say(f"encoded {number:,} pairs")

    columns = data.model_dump_json(
        include={"source", "target", "source_column", "target_column", "exclude"}
    )
    models = [hashlib.sha256(tokenizer.model).hexdigest() for tokenizer in vocabularies.values()]
    key = digest(*corpus.hashes, *models, columns, f"texts={texts}")

    def encoded() -> TokenStore:
        return encode_on_disk(pairs(), tokenizers(vocabularies), cache, key, texts=texts)

    on_first(lambda: encoded() and None)
    return encoded()  # which finds the files
