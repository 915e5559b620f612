"""The same model with fresh weights: what of a map is due to training.

Adebayo et al. 2018, "Sanity Checks for Saliency Maps", compare explanations in this way; how
distances are judged: docs/decisions/untrained.md.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

from manyheads.lens.measures.attention_difference import untrained_distances
from manyheads.lens.view.image_view import ImageView
from manyheads.lens.view.text_view import MapView, TextView
from manyheads.looking.figures import Watched, watched
from manyheads.nn.layers.linear import pack
from manyheads.nn.recording.trace import record
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.streams import stream

NOTE = (
    "The model shown is untrained: the same architecture with freshly drawn weights. It reads the "
    "same input, and the output of the trained model; probabilities are its own."
)
SAME = "this attention does not differ from the untrained model's."

P = TypeVar("P", bound=Predictor)
T = TypeVar("T")
V = TypeVar("V", bound=TextView | ImageView)

_drawn: WeakKeyDictionary[nn.Module, dict[int, nn.Module]] = WeakKeyDictionary()


def untrained(predictor: P, seed: int = 0) -> P:
    """Return a copy of a predictor with fresh weights, drawn as for training.

    They are kept as long as the trained model is, so that they are drawn once.
    """
    models = _drawn.setdefault(predictor.model, {})
    if seed not in models:
        recipe = predictor.folder.recipe
        config = getattr(predictor.model, "config", None) or recipe.config()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream(seed, "untrained"))
            model = pipeline_of(recipe).build(recipe, config)
        models[seed] = pack(model.eval()).to(next(predictor.model.parameters()).device)
    fresh = copy(predictor)
    fresh.model = models[seed]
    return fresh


def watch(predictor: P, run: Callable[[P], T], *, fresh: bool) -> tuple[Watched, T, T]:
    """Record one pass: of the model, or if `fresh` of the untrained one, compared with it.

    Returns:
        What was recorded, what `run` returned of this model, and what it returned of the trained.
    """
    if not fresh:
        with watched(predictor.model) as seen:
            found = run(predictor)
        return seen, found, found
    with torch.inference_mode(), record() as trained:
        own = run(predictor)
    shown, another = untrained(predictor), untrained(predictor, seed=1)
    with watched(shown.model) as seen:
        found = run(shown)
    with torch.inference_mode(), record() as other:
        run(another)
    distances = untrained_distances(trained, seen.trace, other)
    return replace(seen, distances=distances), found, own


def compared(view: V, seen: Watched) -> V:
    """Add to the view of an untrained model how far the trained one is from it."""
    if seen.distances is None:
        return view
    maps: list[MapView] = []
    notes = [NOTE]
    for each in view.maps:
        found = seen.distances[each.site]
        maps.append(replace(each, untrained_distance=found.heads, untrained_noise=found.noise))
        if found.same:
            heads = ", ".join(map(str, found.same))
            plural = "s" * (len(found.same) > 1)
            notes.append(f"{each.site}, head{plural} {heads}: {SAME}")
    return replace(view, maps=maps, notes=[*notes, *view.notes])
