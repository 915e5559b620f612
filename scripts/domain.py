"""Set what is usual for the shipped translators by their validation data, and test it on others'.

MANYHEADS_DATA=FOLDER python scripts/domain.py            # or the names of some
"""

import sys
from dataclasses import replace

import manyheads
from manyheads.data.text.corpus import Corpus
from manyheads.project.domain import store_domain
from manyheads.project.paths import shipped
from manyheads.recipe_data.pair_splits import corpus_split
from manyheads.tasks.translate.domain_limits import set_domain, unusual_share
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe

OTHERS = 100  # texts of another model's validation data


def main() -> None:
    """Translate the validation split of each, and store the limits in manyheads.json."""
    loaded = map(manyheads.load, sorted(shipped("pretrained")))
    models = [model for model in loaded if isinstance(model, Translator)]
    for model in models:
        if sys.argv[1:] and model.folder.name not in sys.argv[1:]:
            continue
        own = _valid(model)
        found = [best for best, *_ in model.translate(own.source)]
        model.domain = set_domain(model, own, found, own.origin)
        assert model.domain is not None
        store_domain(model.folder, model.domain)
        share = unusual_share(model, own, found)
        print(f"{model.folder.name}: {share:.2f}% unusual, {model.domain}", flush=True)
        for other in map(_valid, models):
            if other.hashes != own.hashes:
                texts = other.source[:: len(other) // OTHERS][:OTHERS]
                some = Corpus(texts, texts, origin=other.origin, hashes=other.hashes)
                best = [each for each, *_ in model.translate(texts)]
                share = unusual_share(model, some, best)
                print(f"  sources of {other.origin}: {share:.0f}%", flush=True)


def _valid(model: Translator) -> Corpus:
    recipe = model.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    # Named as in the recipe: where its files lie on this machine would mean nothing later.
    return replace(corpus_split("valid", recipe.data), origin=str(recipe.data.valid))


if __name__ == "__main__":
    main()
