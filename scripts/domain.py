"""Set what is usual for the shipped translators, from their validation data.

MANYHEADS_DATA=FOLDER python scripts/domain.py            # or the names of some
"""

import sys

import manyheads
from manyheads.app.data.sources import corpus_split
from manyheads.app.evaluate.domain import set_domain, unusual_share
from manyheads.app.pipelines.translate import TranslateRecipe
from manyheads.app.predictors.translator import Translator
from manyheads.app.project.domain import store_domain

NAMES = ("date-en-ko", "enko-en-ko", "enko-ko-en", "multi30k-en-de")


def main() -> None:
    """Translate the validation split of each, and store the limits in manyheads.json."""
    for name in sys.argv[1:] or NAMES:
        translator = manyheads.load(name)
        assert isinstance(translator, Translator)
        recipe = translator.folder.recipe
        assert isinstance(recipe, TranslateRecipe)
        corpus = corpus_split("valid", recipe.data)
        found = [best for best, *_ in translator.translate(corpus.source)]
        domain = set_domain(translator, corpus, found, str(recipe.data.valid))
        assert domain is not None
        translator.domain = domain
        store_domain(translator.folder, domain)
        share = unusual_share(translator, corpus, found)
        print(f"{name}: {share:.2f}% of {domain.texts:,} texts are unusual, {domain}")


if __name__ == "__main__":
    main()
