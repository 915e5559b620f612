"""Translate texts one by one and in batches, and count what changes.

    python examples/batch_invariance.py [MODEL [COUNT]]

In fp32 nothing may change; in bf16 the rounding depends on the batch, and the share is printed.
"""

import sys
from contextlib import nullcontext

import torch

import manyheads
from manyheads.app.predict import Translator
from manyheads.app.recipe import TranslateRecipe
from manyheads.app.sources import corpus_split


def compare(translator: Translator, texts: list[str], *, bf16: bool) -> tuple[int, float]:
    """Return how many translations change, and by how much the scores of the others do."""
    precision = torch.autocast("cpu", torch.bfloat16) if bf16 else nullcontext()
    with precision:
        together = [best for best, *_ in translator.translate(texts)]
        alone = [translator.translate([text])[0][0] for text in texts]
    pairs = list(zip(alone, together, strict=True))
    changed = sum(a.text != b.text for a, b in pairs)
    return changed, max(abs(a.score - b.score) for a, b in pairs if a.text == b.text)


def main() -> None:
    """Compare in fp32 and in bf16."""
    name = sys.argv[1] if len(sys.argv) > 1 else "date-en-ko"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    translator = manyheads.load(name)
    assert isinstance(translator, Translator)
    recipe = translator.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    texts = corpus_split("valid", recipe.data).source[:count]
    for bf16 in (False, True):
        changed, difference = compare(translator, texts, bf16=bf16)
        print(
            f"{'bf16' if bf16 else 'fp32'}: {changed} of {len(texts)} change "
            f"({changed / len(texts):.2%}); scores of the others differ by at most {difference:.1e}"
        )


if __name__ == "__main__":
    main()
