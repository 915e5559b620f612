"""From a recipe to what a run needs before its model."""

from pathlib import Path

from manyheads.fit.inputs import prepared_with_captions, readable_captions, settings_of
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.paths import find_model
from manyheads.project.sentencepiece_files import (
    SHARED,
    learn_tokenizer,
    load_vocabularies,
    need_vocabularies,
)
from manyheads.recipe_data.caption_splits import captioned_splits, refuse_other_languages
from manyheads.tasks.caption.recipe import CaptionRecipe
from manyheads.tasks.caption.task import CaptionTask


def prepare(recipe: CaptionRecipe, out: Path, say: Say) -> Prepared:
    """Read images and captions; learn the vocabulary, or take that of the run."""
    train, valid = readable_captions(*captioned_splits(recipe), recipe, out, say)
    languages = list(dict.fromkeys(train.languages))
    vocabularies = load_vocabularies(out)
    if recipe.start is not None:
        say(f"continuing {recipe.start.model}, with its vocabulary")
        vocabularies = vocabularies or need_vocabularies(find_model(recipe.start.model))
        refuse_other_languages(train, list(vocabularies[SHARED].languages))
    if not vocabularies:
        say(f"learning a vocabulary from {len(train.texts):,} captions")
        vocabularies = {SHARED: learn_tokenizer(train.texts, recipe.tokenizer, languages)}
    own, tokenizer = settings_of(recipe), vocabularies[SHARED]
    task = CaptionTask(train, valid, tokenizer, evaluate=recipe.evaluate, **own)
    say(
        f"{len(train):,} images, {len(train.texts):,} captions in {', '.join(languages)}; "
        f"{len(valid):,} images to validate on"
    )
    if task.left_out:
        say(
            f"left out {task.left_out:,} captions, longer than train.max_length = "
            f"{recipe.train.max_length} tokens"
        )

    return prepared_with_captions(task, recipe, vocabularies, train, valid)
