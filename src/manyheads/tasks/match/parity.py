"""Parity of matchers of images and texts."""

from typing import cast

from torch import Tensor

from manyheads.asks.export_request import ParityRequest
from manyheads.engines.engine_parity import Parity
from manyheads.fit.training_images import Pixels
from manyheads.measure.parity_inputs import (
    data_to_compare,
    examples_to_compare,
    relative_difference,
    run_both,
)
from manyheads.tasks.match.evaluation import matches_to_measure
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.match.task import embed_texts, image_vectors, queries, recalls


def parity(reference: Matcher, exported: Matcher, request: ParityRequest) -> Parity:
    """Compare the vectors of the same images and texts, and what they find."""
    recipe = cast(MatchRecipe, reference.folder.recipe)
    captions, head = data_to_compare(
        lambda given: matches_to_measure(recipe, recipe.data.asked, given)[::2], request
    )
    captions = captions.select(examples_to_compare(len(captions), request))
    given = queries(captions)

    def vectors(each: Matcher) -> tuple[Tensor, Tensor]:
        images = image_vectors(each.model, Pixels(captions.images, each.preprocessing))
        return images, embed_texts(each.model, each.tokenizer, given.texts, each.longest)

    ours, theirs, seconds = run_both(reference, exported, vectors)
    found = [
        recalls(each.model, each.tokenizer, images, given, each.longest)
        for each, (images, _) in ((reference, ours), (exported, theirs))
    ]
    metric = next(iter(found[0]))
    nearest = [(texts @ images.T).argmax(dim=1) for images, texts in (ours, theirs)]
    return Parity(
        data=head["data"],
        inputs=len(captions),
        compared="vectors",
        difference=max(relative_difference(*pair) for pair in zip(ours, theirs, strict=True)),
        changed=float((nearest[0] != nearest[1]).float().mean()),
        metric=metric,
        before=found[0][metric],
        after=found[1][metric],
        seconds=seconds,
    )
