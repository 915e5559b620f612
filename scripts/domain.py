"""Set what is usual for the shipped translators by their validation data, and test it on others'.

Of models that read images, set what is usual for images.

MANYHEADS_DATA=FOLDER python scripts/domain.py            # or the names of some
"""

import sys
from dataclasses import replace
from typing import Any

import manyheads
from manyheads.data.images.image_set import ImageSet
from manyheads.data.text.corpus import Corpus
from manyheads.measure.image_limits import image_domain
from manyheads.predict.image_inputs import ImagePredictor
from manyheads.project.domain import store_domain, store_image_domain
from manyheads.project.paths import shipped
from manyheads.recipe_data.caption_splits import captioned_split
from manyheads.recipe_data.image_splits import image_split
from manyheads.recipe_data.pair_splits import corpus_split
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.translate.domain_limits import set_domain, unusual_share
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe

OTHERS = 100  # texts of another model's validation data


def main() -> None:
    """Set the limits of those that are named, or of all."""
    every = [*map(manyheads.load, sorted(shipped("pretrained")))]
    chosen = [model for model in every if not sys.argv[1:] or model.folder.name in sys.argv[1:]]
    of_images([each for each in chosen if isinstance(each, Classifier | Matcher | Captioner)])
    translators = [each for each in every if isinstance(each, Translator)]
    of_texts([each for each in translators if each in chosen], translators)


def of_images(models: list[Classifier | Matcher | Captioner]) -> None:
    """Measure training images of each, and store the limits in manyheads.json."""
    for model in models:
        data: Any = model.folder.recipe.data
        domain = image_domain(_images(model), model.preprocessing, data.train)
        assert domain is not None
        store_image_domain(model.folder, domain)
        print(f"{model.folder.name}: {domain}", flush=True)


def of_texts(models: list[Translator], others: list[Translator]) -> None:
    """Translate the validation split of each, store the limits, and test them on others'."""
    for model in models:
        own = _valid(model)
        found = [best for best, *_ in model.translate(own.source)]
        model.domain = set_domain(model, own, found, own.origin)
        assert model.domain is not None
        store_domain(model.folder, model.domain)
        share = unusual_share(model, own, found)
        print(f"{model.folder.name}: {share:.2f}% unusual, {model.domain}", flush=True)
        for other in map(_valid, others):
            if other.hashes != own.hashes:
                texts = other.source[:: len(other) // OTHERS][:OTHERS]
                some = Corpus(texts, texts, origin=other.origin, hashes=other.hashes)
                best = [each for each, *_ in model.translate(texts)]
                share = unusual_share(model, some, best)
                print(f"  sources of {other.origin}: {share:.0f}%", flush=True)


def _images(model: ImagePredictor) -> ImageSet:
    recipe: Any = model.folder.recipe
    if isinstance(model, Classifier):
        return image_split("train", recipe)
    return captioned_split("train", recipe).images


def _valid(model: Translator) -> Corpus:
    recipe = model.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    # Named as in the recipe: where its files lie on this machine would mean nothing later.
    return replace(corpus_split("valid", recipe.data), origin=str(recipe.data.valid))


if __name__ == "__main__":
    main()
