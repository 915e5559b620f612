"""The same model untrained: what of a map is due to training, and what is there without."""

import copy
import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import manyheads
from manyheads.asks.look_request import LookRequest
from manyheads.lens.measures.attention_difference import MapDistance, row_distance
from manyheads.lens.trace.attention_reader import Attention, attentions
from manyheads.lens.view.image_view import ImageView
from manyheads.lens.view.text_view import TextView
from manyheads.looking.look_inside import Look, head_steps_at, look
from manyheads.looking.untrained import NOTE, SAME, untrained
from manyheads.nn.attention.attention import attend
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.trace import LayerId, record
from tests import language
from tests.schema import errors

SENTENCE = "A man is cleaning a window."


@pytest.fixture(scope="module")
def model() -> Any:
    return manyheads.load("multi30k-en-de")


@pytest.fixture(scope="module")
def fresh(model: Any) -> Look:
    return look(model, SENTENCE, untrained=True)


def attention(*scores: list[float]) -> Attention:
    """One head over two keys with these scores: q.k / sqrt(2)."""
    q = torch.tensor(scores)[None, None] * 2**0.5
    with record() as trace:
        keys = torch.eye(2)[None, None]
        attend(q, keys, keys, context=AttentionContext(LayerId("encoder")))
    (found,) = attentions(trace)
    return found


def test_the_distance_of_rows_by_hand() -> None:
    """Two queries: 1/2 and 1/2 against 1 and 0 is a half, equal rows are none; the mean of both."""
    even, one = attention([0, 0], [1, 3]), attention([100, 0], [1, 3])
    assert row_distance(even, one).tolist() == pytest.approx([0.25])
    assert row_distance(even, even).tolist() == [0]
    assert row_distance(attention([100, 0]), attention([0, 100])).tolist() == pytest.approx([1])
    assert MapDistance([0.3, 0.1, 0.2], noise=0.2).same == [2, 3]


def test_rows_and_columns_are_those_of_the_trained_model(model: Any, fresh: Look) -> None:
    """It reads the trained model's output, and says everywhere that it is untrained."""
    own = look(model, SENTENCE)
    assert isinstance(own.view, TextView)
    assert isinstance(fresh.view, TextView)
    assert fresh.answer == own.answer == model(SENTENCE)
    assert (fresh.view.source, fresh.view.output) == (own.view.source, own.view.output)
    for found, trained in zip(fresh.view.maps, own.view.maps, strict=True):
        assert (found.site, found.rows, found.columns) == (
            trained.site,
            trained.rows,
            trained.columns,
        )
        apart = np.abs(np.array(found.weights) - np.array(trained.weights)).sum(axis=2) / 2
        assert found.untrained_distance == pytest.approx(apart.mean(axis=1).tolist(), abs=2e-3)
        assert (trained.untrained_distance, trained.untrained_noise) == (None, None)
    assert max(fresh.view.probabilities) < 0.1 < min(own.view.probabilities[:2])
    assert (fresh.view.steps, fresh.view.alignment) == ([], None)
    assert fresh.title.startswith("multi30k-en-de, untrained: ")
    assert fresh.view.notes[0] == NOTE
    assert NOTE not in own.view.notes
    assert errors(json.loads(json.dumps(fresh.to_json()))) == []


def test_it_is_drawn_once_and_changes_nothing(model: Any, fresh: Look) -> None:
    """From a fixed seed, kept with the trained model, without touching torch's generator."""
    again = manyheads.load("multi30k-en-de")
    before, state = again(SENTENCE), torch.get_rng_state()
    assert look(again, SENTENCE, untrained=True).to_json() == fresh.to_json()
    assert torch.equal(torch.get_rng_state(), state)
    assert again(SENTENCE) == before
    assert untrained(again).model is untrained(again).model is not again.model
    kept = weakref.ref(untrained(again).model)
    del again
    gc.collect()
    assert kept() is None


def test_what_was_learned_differs_and_an_untrained_model_does_not(model: Any, fresh: Look) -> None:
    """Nearly all heads of the one, hardly any of the other; both by the same threshold."""

    def share(found: Look) -> float:
        heads = [
            distance <= (each.untrained_noise or 0)
            for each in found.view.maps
            for distance in each.untrained_distance or []
        ]
        assert len(heads) == 48
        return sum(heads) / len(heads)

    assert share(fresh) < 0.1
    nothing = copy.copy(model)
    nothing.model = untrained(model, seed=7).model
    unlearned = look(nothing, SENTENCE, untrained=True)
    assert share(unlearned) > 0.85
    assert sum(note.endswith(SAME) for note in unlearned.view.notes) == 12  # a note a layer


def test_a_head_is_computed_of_the_model_that_is_shown(model: Any, fresh: Look) -> None:
    shown = fresh.view.maps[-1]
    for asked, wanted in ((True, shown.weights[1][2]), (False, None)):
        request = LookRequest(given=SENTENCE, untrained=asked)
        weights = head_steps_at(model, request, shown.site, 2, 3).weights
        assert (list(weights) == pytest.approx(wanted, abs=1e-4)) is asked


@pytest.mark.parametrize("task", ["generate", "fill", "tag"])
def test_models_of_one_text(task: str) -> None:
    """The answer stays the trained model's."""
    text = "eins <mask> drei" if task == "fill" else "eins zwei"
    folder = language.trained(task)
    found, own = look(folder, text, untrained=True), look(folder, text)
    assert (found.answer, found.view.notes[0]) == (own.answer, NOTE)
    assert isinstance(found.view, TextView)
    assert isinstance(own.view, TextView)
    assert found.view.output == own.view.output
    assert found.view.probabilities != own.view.probabilities
    assert errors(json.loads(json.dumps(found.to_json()))) == []


@pytest.mark.parametrize(
    ("name", "image"), [("cifar10-cct-2-3x2", "ship"), ("emoji-caption", "heart")]
)
def test_models_of_images(name: str, image: str) -> None:
    """The same picture; what is explained is the trained model's class, or its caption."""
    path = Path(__file__).parents[2] / "docs" / "images" / f"{image}.png"
    found, own = look(name, path, untrained=True), look(name, path)
    assert isinstance(found.view, ImageView)
    assert isinstance(own.view, ImageView)
    assert found.view.grids == own.view.grids
    targets = [{each.target for each in view.overlays} for view in (found.view, own.view)]
    assert targets[0] == targets[1]
    assert all(each.untrained_distance for each in found.view.maps)
    assert found.view.notes[0] == NOTE
    assert errors(json.loads(json.dumps(found.to_json()))) == []


def fours() -> Iterator[Image.Image]:
    pytest.importorskip("sklearn")
    from manyheads.data.images.digits import read_digits

    digits = read_digits()
    for number in np.flatnonzero(digits.labels == 4)[:10]:
        found = digits.read(int(number))
        assert isinstance(found, Image.Image)
        yield found


def test_an_untrained_vit_draws_a_clear_four() -> None:
    """V1: the attention of some head goes with the ink, though nothing was learned."""
    model = manyheads.load("digits")
    best = []
    for image in fours():
        ink = np.array(image, dtype=float).reshape(4, 2, 4, 2).mean(axis=(1, 3)).ravel()
        heads = [
            np.array(head)[:, -16:].mean(axis=0)  # of all tokens to each patch
            for each in look(model, image, untrained=True).view.maps
            for head in each.weights
        ]
        best.append(max(np.corrcoef(head, ink)[0, 1] for head in heads))
    assert np.median(best) > 0.8
