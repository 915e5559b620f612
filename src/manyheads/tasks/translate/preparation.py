"""From a recipe to what a run needs before its model."""

from dataclasses import replace
from pathlib import Path
from typing import cast

from manyheads.data.augment.speech_levels import with_levels
from manyheads.data.even_sample import limited
from manyheads.data.text.corpus import Corpus
from manyheads.files import write_text
from manyheads.fit.inputs import digest, has_token_limit, refuse_longer
from manyheads.generation.special_ids import SpecialIds
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.folder import CACHE, HELD_OUT, write_vocabularies
from manyheads.project.sentencepiece_files import (
    learn_vocabularies,
    load_vocabularies,
    sizes,
    tokenizers,
)
from manyheads.recipe_data.named_splits import reject_test_splits
from manyheads.recipe_data.pair_splits import (
    corpus_split,
    read_corpus,
    training_corpus,
    with_more_pairs,
)
from manyheads.tasks.translate.encoded_corpus import encoded_corpus
from manyheads.tasks.translate.initialize import (
    copy_foreign_files,
    foreign_vocabularies,
    start_vocabularies,
)
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.tasks.translate.task import TranslateTask
from manyheads.train.ranks import rank_and_world


def prepare(recipe: TranslateRecipe, out: Path, say: Say) -> Prepared:
    """Read the corpora; learn the vocabulary, or take that of the run or of [start]."""
    language = recipe.data.target
    for name in recipe.evaluate.metrics:
        TEXT_METRICS[name](["text"], ["text"], language)  # finds a missing package before training
    corpus, valid = training_corpus(recipe.data, say), corpus_split("valid", recipe.data)
    general = read_corpus(recipe.data.general, recipe.data) if recipe.data.general else None
    reject_test_splits(corpus, valid, *([general] if general else []))
    held_out, valid = valid, limited(valid, recipe.evaluate.limit)
    general = limited(general, recipe.evaluate.limit) if general else None
    corpus = with_more_pairs(corpus, recipe.augment, recipe.data, recipe.seed)
    if recipe.augment.levels:  # the model is measured at the level that it is asked for
        tagged = with_levels(valid.source, valid.target, recipe.seed, language)
        valid = replace(valid, source=tagged)
    theirs = foreign_vocabularies(recipe, out)
    vocabularies = theirs or load_vocabularies(out)
    if not vocabularies:
        # A whole pass over a large corpus, for the rank that learns from it.
        first = rank_and_world()[0] == 0
        sources, targets = corpus.sample(recipe.seed) if first else ([], [])
        if recipe.start is not None and recipe.start.vocabulary == "theirs":
            say("taking over the vocabulary of the models to start from")
            vocabularies = start_vocabularies(recipe, recipe.start, sources, targets)
        else:
            kind = "a vocabulary" if recipe.tokenizer.shared else "two vocabularies"
            which = "" if isinstance(corpus, Corpus) else "a sample of "
            say(f"learning {kind} from {which}{len(sources):,} pairs")
            vocabularies = learn_vocabularies(sources, targets, recipe.tokenizer)
            pieces, wanted = min(map(len, vocabularies.values())), recipe.tokenizer.size
            if pieces < wanted and recipe.tokenizer.kind == "unigram":
                say(
                    f"the text gives {pieces:,} pieces of {wanted:,}, 256 of them bytes: words may "
                    "be cut small; tokenizer.kind=bpe keeps more of them whole"
                )
    # A converted model's vocabulary may be smaller than its embeddings: its recipe has the sizes.
    config = recipe.config(**({} if theirs else sizes(vocabularies)))
    both = tokenizers(vocabularies, recipe.tokenizer)
    texts = recipe.tokenizer.sampling > 0 or recipe.augment.changes_pairs
    task = TranslateTask(
        corpus,
        valid,
        both,
        recipe.train,
        recipe.evaluate,
        seed=recipe.seed,
        ids=cast(SpecialIds, config),
        sampling=recipe.tokenizer.sampling,
        noise=recipe.augment,
        store=encoded_corpus(
            corpus, vocabularies, recipe.data, recipe.tokenizer, out / CACHE, say, texts=texts
        ),
        language=language,
        general=general,
    )
    if task.left_out:
        say(
            f"left out {task.left_out:,} of {len(task.store):,} pairs, longer than "
            f"train.max_length = {recipe.train.max_length} tokens"
        )
    if has_token_limit(config):  # or the validation data would be encoded for nothing
        longest = 1 + max(map(len, both.source.encode(valid.source)))  # with the end
        refuse_longer(config, longest, *(side.max() for side in task.lengths))

    def write_inputs(folder: Path) -> None:
        if theirs:
            copy_foreign_files(recipe, folder)
        else:
            write_vocabularies(folder, vocabularies)
        if recipe.data.hold_out:
            rows = zip(held_out.lines, held_out.source, held_out.target, strict=True)
            write_text(folder / HELD_OUT, "".join(f"{n}\t{s}\t{t}\n" for n, s, t in rows))

    return Prepared(task, config, write_inputs, {"data": digest(*corpus.hashes, *valid.hashes)})
