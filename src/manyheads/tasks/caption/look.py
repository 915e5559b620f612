"""A caption on its image: where the decoder looked for each word."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import exp
from pathlib import Path

import torch
from torch import Tensor

from manyheads.asks.look_request import LookRequest
from manyheads.decode.step import Hypothesis
from manyheads.errors import UsageError
from manyheads.generation.special_ids import special_ids
from manyheads.generation.token_details import describe
from manyheads.lens.measures.token_losses import loss_table
from manyheads.lens.thumbnail import thumbnail
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.grids import Crop
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.lens.view.image_view import Attribution, image_view
from manyheads.looking.figures import figures_of_image
from manyheads.looking.image_overlays import shown_pixels
from manyheads.looking.refusals import refuse_for_images
from manyheads.looking.untrained import compared, watch
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import Trace
from manyheads.predict.image_inputs import ImageInput, named, opened
from manyheads.predict.task_pipeline import Explanation
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.task import language_prefix

WORDS = 40  # that are shown
NO_GRID = (
    "The captioner does not record where in the image its words look: an image encoder calls "
    "start_image(images) first and track_conv or track_modules behind what changes the grid "
    "(docs/extending.md)."
)
TITLE = "How surprised the model was by each word"


def look(predictor: Captioner, request: LookRequest) -> Explanation:
    """Show each word of a caption on the image: the model's own, or the reference of the request.

    The view has the words in the place of classes, each with its probability and an overlay: the
    cross-attention of its tokens, a mean over heads and layers.

    Raises:
        UsageError: the caption is empty; the model does not record where its words look.
    """
    refuse_for_images(predictor, request, writes=True)
    if request.target is not None or request.baseline != "black":
        raise UsageError(
            f"{predictor.folder.name} has no classes to explain: leave out `target` and "
            "`baseline`; `reference` takes a caption of your own."
        )
    image = opened(request.given)
    language = predictor.known(request.language or "")
    notes = ["A word's probability is given the image and the words before it."]
    if request.reference is None:
        ((best, *_),) = predictor.caption([image], language)
        tokens, text = best.tokens, best.text
        if not request.untrained:
            strange = predictor.unlike([predictor.pixels(image)])
            notes = [*predictor.notes(best, *strange), *notes]
    else:
        (tokens,) = predictor.tokenizer.encode([request.reference])
        text = request.reference
    if not tokens:
        raise UsageError("The caption is empty: there are no words to show.")
    source, target = teacher_forcing(predictor, image, language, tokens)
    seen, logits, _ = watch(
        predictor, lambda each: each.model(source, target[:, :-1]), fresh=request.untrained
    )
    prefix = len(language_prefix(predictor.tokenizer, language))
    chances = logits.float().log_softmax(dim=-1).gather(2, target[:, 1:, None])
    log_chances = chances[0, prefix:, 0].tolist()
    written = Hypothesis(list(tokens), sum(log_chances), 0.0, True, log_chances)
    details = describe(predictor.tokenizer, text, written)
    crossed = [each for each in attentions(seen.trace) if each.layer_id.kind == "cross"]
    grid = crossed[0].key_grid if crossed else None
    if grid is None or any(each.shape[1] != grid.count for each in crossed):
        raise UsageError(NO_GRID)
    encoder = Trace([each for each in seen.trace if each.layer_id.stack != "decoder"])
    seen = replace(seen, trace=encoder)
    shares = torch.stack([each.whole().mean(dim=0) for each in crossed]).mean(dim=0)
    words = list(_words(text, [(each.begin, each.end) for each in details]))[:WORDS]
    overlays = [_overlay(grid, shares[prefix:], name, places) for name, places in words]
    shown = shown_pixels(predictor.preprocessing, image)
    height, width = shown.shape[:2]
    view = image_view(
        seen.trace,
        width=width,
        height=height,
        classes=[
            (name, exp(sum(log_chances[place] for place in places))) for name, places in words
        ],
        crop=Crop(*predictor.preprocessing.box(width, height)),
        attributions=overlays,
        notes=notes,
    )
    end = special_ids(predictor.model).end
    names = [predictor.tokenizer.piece(token) for token in [*tokens, end]]
    costs = loss_table(
        names,
        [exp(each) for each in log_chances],
        title=TITLE if request.reference is None else f"{TITLE} of your caption",
        given="given the image and those before it",
    )
    figures = [costs, *figures_of_image(seen)]
    result = {"path": named(request.given), "answer": text}
    return Explanation(
        result, replace(compared(view, seen), figures=figures), thumbnail(torch.from_numpy(shown))
    )


def shapes(predictor: Captioner, given: str) -> list[ShapeLine]:
    """Walk through a caption: encode the image once, then read the whole text under the mask."""
    refuse_for_images(predictor, LookRequest(given=given))
    language = predictor.known("")
    ((best, *_),) = predictor.caption([Path(given)], language)
    source, target = teacher_forcing(predictor, given, language, best.tokens)
    with torch.inference_mode():
        return walk(predictor.model, lambda: predictor.model(source, target[:, :-1]))


def teacher_forcing(
    captioner: Captioner, image: ImageInput, language: str, tokens: list[int]
) -> tuple[Tensor, Tensor]:
    """Return a normalised image (1, channel, height, width) and a whole target (1, token)."""
    device = next(captioner.model.parameters()).device
    pixels = captioner.pixels(image)[None].to(device)
    front = language_prefix(captioner.tokenizer, language)
    ids = special_ids(captioner.model)
    target = torch.tensor([[ids.start, *front, *tokens, ids.end]], device=device)
    return captioner.preprocessing.normalise(pixels), target


def _overlay(grid: TokenGrid, shares: Tensor, name: str, places: list[int]) -> Attribution:
    """Show the attention of some tokens; the row of a token is the one that predicts it."""
    values = shares[places].mean(dim=0)
    legend = "cross-attention while this word was written, a mean over heads and layers"
    return Attribution(f"cross-attention: {name}", legend, name, grid, values, scaled="peak")


def _words(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[str, list[int]]]:
    """Join tokens to words that spaces separate; equal words are numbered."""
    groups: list[list[int]] = []
    for place, ((_, before), (begin, _)) in enumerate(pairwise([(0, 0), *spans])):
        if not groups or text[before:begin].strip() != text[before:begin]:
            groups.append([])
        groups[-1].append(place)
    seen: dict[str, int] = {}
    for group in groups:
        word = text[spans[group[0]][0] : spans[group[-1]][1]].strip() or "·"
        seen[word] = seen.get(word, 0) + 1
        yield (word if seen[word] == 1 else f"{word} ({seen[word]})"), group
