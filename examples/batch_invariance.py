"""Translate texts one by one and in batches, and count what changes.

    python examples/batch_invariance.py [MODEL [COUNT]]

In fp32 nothing may change; in bf16 the rounding depends on the batch, and the share is printed.
"""

import sys
from contextlib import nullcontext
from typing import NamedTuple

import torch

import manyheads
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.recipe_data.pair_splits import corpus_split
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe


class Comparison(NamedTuple):
    """Translations of the same texts one by one and together."""

    alone: list[str]
    together: list[str]
    difference: float  # largest, between the scores of those that are the same

    @property
    def changed(self) -> int:
        """Count the texts that are translated differently."""
        return sum(a != b for a, b in zip(self.alone, self.together, strict=True))


def compare(translator: Translator, texts: list[str], *, bf16: bool) -> Comparison:
    """Translate one by one and together."""
    precision = torch.autocast("cpu", torch.bfloat16) if bf16 else nullcontext()
    with precision:
        together = [best for best, *_ in translator.translate(texts)]
        alone = [translator.translate([text])[0][0] for text in texts]
    pairs = list(zip(alone, together, strict=True))
    return Comparison(
        [a.text for a, _ in pairs],
        [b.text for _, b in pairs],
        max(abs(a.score - b.score) for a, b in pairs if a.text == b.text),
    )


def main() -> None:
    """Compare in fp32 and in bf16."""
    name = sys.argv[1] if len(sys.argv) > 1 else "date-en-ko"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    translator = manyheads.load(name)
    assert isinstance(translator, Translator)
    recipe = translator.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    corpus = corpus_split("valid", recipe.data)
    texts, references = corpus.source[:count], corpus.target[:count]
    metric = recipe.evaluate.metrics[0]
    for bf16 in (False, True):
        found = compare(translator, texts, bf16=bf16)
        alone, together = (
            TEXT_METRICS[metric](outputs, references, recipe.data.target).value
            for outputs in (found.alone, found.together)
        )
        print(
            f"{'bf16' if bf16 else 'fp32'}: {found.changed} of {len(texts)} change; scores of the "
            f"others differ by at most {found.difference:.1e}; {metric} {alone:.2f} one by one, "
            f"{together:.2f} together"
        )


if __name__ == "__main__":
    main()
