"""From a recipe to what a run needs before its model."""

from dataclasses import replace
from pathlib import Path

from manyheads.data.images.image_set import ImageSet
from manyheads.fit.inputs import prepared_with_captions, readable_captions
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.sentencepiece_files import SHARED, learn_tokenizer, load_vocabularies
from manyheads.recipe_data.caption_splits import captioned_split, captioned_splits
from manyheads.tasks.match.evaluation import queries_of
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.match.task import MatchTask
from manyheads.train.device import best_device


def prepare(recipe: MatchRecipe, out: Path, say: Say) -> Prepared:
    """Read images and texts; learn the vocabulary, or take that of the run."""
    train, valid = readable_captions(*captioned_splits(recipe), recipe, out, say)
    vocabularies = load_vocabularies(out)
    if not vocabularies:
        say(f"learning a vocabulary from {len(train.texts):,} texts")
        vocabularies = {SHARED: learn_tokenizer(train.texts, recipe.tokenizer)}
    tokenizer = vocabularies[SHARED]
    asked = replace(queries_of(valid, "valid", recipe.data.asked), images=valid.images)
    task = MatchTask(
        train,
        asked,
        tokenizer,
        recipe.image,
        recipe.augment,
        recipe.train,
        seed=recipe.seed,
        device=best_device(),
        train_queries=queries_of(train, "train", recipe.data.asked)
        if recipe.data.queries
        else None,
    )
    say(f"{len(train):,} images, {len(train.texts):,} texts; {len(valid):,} images to validate on")

    return prepared_with_captions(task, recipe, vocabularies, train, asked)


def validation_images(recipe: MatchRecipe) -> ImageSet:
    """Read them."""
    return captioned_split("valid", recipe).images
