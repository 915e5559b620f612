"""Compare models that read images on an engine with the same on torch."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyheads.app.data.tables import CaptionData, CaptionRecipe, ImageRecipe
from manyheads.app.engines.parity import Parity
from manyheads.app.evaluate.captions import captions_to_measure
from manyheads.app.evaluate.matches import matches_to_measure
from manyheads.app.evaluate.parity_inputs import (
    data_to_compare,
    examples_to_compare,
    relative_difference,
    run_both,
)
from manyheads.app.evaluate.score import images_to_measure
from manyheads.app.predictors.captioner import Captioner
from manyheads.app.predictors.classifier import Classifier
from manyheads.app.predictors.embedder import Embedder
from manyheads.app.predictors.matcher import Matcher
from manyheads.asks.export_request import ParityRequest
from manyheads.data.batching.batches import pad
from manyheads.data.spread import spread
from manyheads.tasks.caption import caption, caption_scores, language_prefix, references
from manyheads.tasks.class_metrics import mean_average_precision
from manyheads.tasks.classify import Pixels, predict_all_logits
from manyheads.tasks.match import embed_texts, image_vectors, queries, recalls
from manyheads.tasks.special_ids import special_ids

SCORED = 64  # captions whose tokens are scored: every token of each is compared


def classifier_parity(
    reference: Classifier, exported: Classifier, recipe: ImageRecipe, request: ParityRequest
) -> Parity:
    """Classify the same images on both.

    Raises:
        NotFoundError: the recipe's validation data are not here, and nothing else was given.
    """
    images, head = data_to_compare(lambda given: images_to_measure(recipe, given), request)
    images = images.relabel(reference.labels).select(examples_to_compare(len(images), request))
    ours, theirs, seconds = run_both(
        reference,
        exported,
        lambda each: predict_all_logits(each.model, Pixels(images, each.preprocessing)),
    )
    if images.multi_label:
        answers = [each.sigmoid() > 0.5 for each in (ours, theirs)]
        changed = (answers[0] != answers[1]).any(dim=1)
        metric = "map"
        before, after = (
            mean_average_precision(each.sigmoid().numpy(), images.labels) for each in (ours, theirs)
        )
    else:
        guesses = [each.argmax(dim=1) for each in (ours, theirs)]
        changed = guesses[0] != guesses[1]
        metric = "accuracy"
        before, after = (100 * float((each.numpy() == images.labels).mean()) for each in guesses)
    return Parity(
        data=head["data"],
        inputs=len(images),
        compared="logits",
        difference=relative_difference(ours, theirs),
        changed=float(changed.float().mean()),
        metric=metric,
        before=before,
        after=after,
        seconds=seconds,
    )


def encoder_parity(
    reference: Embedder, exported: Embedder, recipe: ImageRecipe, request: ParityRequest
) -> Parity:
    """Compare the vectors of the same images, and which other image is nearest to each."""
    images, head = data_to_compare(lambda given: images_to_measure(recipe, given), request)
    images = images.select(examples_to_compare(len(images), request))
    ours, theirs, seconds = run_both(
        reference,
        exported,
        lambda each: predict_all_logits(each.model, Pixels(images, each.preprocessing)),
    )
    return Parity(
        data=head["data"],
        inputs=len(images),
        compared="vectors",
        difference=relative_difference(ours, theirs),
        changed=float((_nearest(ours) != _nearest(theirs)).float().mean()),
        seconds=seconds,
    )


def _nearest(vectors: Tensor) -> Tensor:
    """Return the number of the other vector that is most similar to each."""
    unit = vectors.float() / vectors.float().norm(dim=1, keepdim=True)
    return (unit @ unit.T).fill_diagonal_(-torch.inf).argmax(dim=1)


def matcher_parity(
    reference: Matcher,
    exported: Matcher,
    recipe: CaptionRecipe,
    asked: CaptionData,
    request: ParityRequest,
) -> Parity:
    """Compare the vectors of the same images and texts, and what they find."""
    (captions, head) = data_to_compare(
        lambda given: matches_to_measure(recipe, asked, given)[::2], request
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


def captioner_parity(
    reference: Captioner, exported: Captioner, recipe: Any, request: ParityRequest
) -> Parity:
    """Write texts for the same images on both, and score the tokens of given texts."""
    captions, head = data_to_compare(lambda given: captions_to_measure(recipe, given), request)
    captions = captions.select(examples_to_compare(len(captions), request))
    right = references(captions)
    pixels = Pixels(captions.images, reference.preprocessing)

    def write(each: Captioner) -> list[str]:
        found = caption(each.model, each.tokenizer, pixels, list(right), each.decode)
        return [best.text for best, *_ in found]

    ours, theirs, seconds = run_both(reference, exported, write)
    metric = recipe.evaluate.metrics[0]
    before, after = (
        caption_scores(each, right, (metric,))[metric].value for each in (ours, theirs)
    )
    some = [list(right)[n] for n in spread(len(right), SCORED)]
    targets = [
        [*language_prefix(reference.tokenizer, key[1]), *reference.tokenizer.encode(right[key])[0]]
        for key in some
    ]
    chosen = pixels[np.array([image for image, _ in some])]
    (first, largest), (second, _) = (
        _token_scores(each, chosen, targets) for each in (reference, exported)
    )
    return Parity(
        data=head["data"],
        inputs=len(right),
        compared="log-probabilities of tokens",
        difference=float((first - second).abs().max() / largest),
        changed=float(np.mean([a != b for a, b in zip(ours, theirs, strict=True)])),
        metric=metric,
        before=before,
        after=after,
        seconds=seconds,
    )


@torch.inference_mode()
def _token_scores(
    captioner: Captioner, pixels: Tensor, targets: list[list[int]]
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of all tokens of given captions in a row, and the largest logit."""
    ids = special_ids(captioner.model)
    target = pad([[ids.start, *each, ids.end] for each in targets], ids.pad)
    images = captioner.preprocessing.normalise(pixels)
    found = captioner.model(images, target[:, :-1]).float()
    wanted = target[:, 1:]
    scores = found.log_softmax(dim=-1).gather(2, wanted[..., None])[..., 0]
    return scores[wanted != ids.pad], found.abs().max()
