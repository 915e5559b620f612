"""From a recipe to what a run needs before its model."""

from dataclasses import replace
from pathlib import Path

from manyheads.data.images.image_set import ImageSet
from manyheads.fit.inputs import prepared_with_captions, readable_captions, settings_of
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.sentencepiece_files import SHARED, learn_tokenizer, load_vocabularies
from manyheads.recipe_data.caption_splits import captioned_split, captioned_splits
from manyheads.tasks.match.evaluation import queries_of
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.match.task import MatchTask


def prepare(recipe: MatchRecipe, out: Path, say: Say) -> Prepared:
    """Read images and texts; learn the vocabulary, or take that of the run."""
    train, valid = readable_captions(*captioned_splits(recipe), recipe, out, say)
    vocabularies = load_vocabularies(out)
    if not vocabularies:
        say(f"learning a vocabulary from {len(train.texts):,} texts")
        vocabularies = {SHARED: learn_tokenizer(train.texts, recipe.tokenizer)}
    asked = replace(queries_of(valid, "valid", recipe.data.asked), images=valid.images)
    some = recipe.data.queries  # else all texts are queries
    learned = queries_of(train, "train", recipe.data.asked) if some else None
    own, tokenizer = settings_of(recipe), vocabularies[SHARED]
    task = MatchTask(train, asked, tokenizer, train_queries=learned, **own)
    say(f"{len(train):,} images, {len(train.texts):,} texts; {len(valid):,} images to validate on")

    return prepared_with_captions(task, recipe, vocabularies, train, asked)


def validation_images(recipe: MatchRecipe) -> ImageSet:
    """Read them."""
    return captioned_split("valid", recipe).images
