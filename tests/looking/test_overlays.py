"""Explaining answers: scores, groups, baselines, and what is left out."""

import math

import pytest
import torch
from torch import Tensor

from manyheads.lens.attribution.integrated_gradients import MOST, STEPS
from manyheads.lens.view.image_view import Attribution
from manyheads.looking import budget, image_overlays, text_overlays
from manyheads.looking.image_overlays import explain_class
from manyheads.looking.text_overlays import Reading, explain_reading, log_odds
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from tests.small import ALL, IMAGES, SEQ2SEQS, Images, inputs, randomise

OUTPUT = [4, 7, 3, 2]


def reading(config: ModelConfig) -> Reading:
    """A text through a small model: 5 source tokens, 4 output tokens."""
    model = randomise(build(config)).eval()
    source, target = (x[:1] for x in inputs(config))
    return Reading(
        model,
        source,
        OUTPUT,
        lambda ids: model(ids, target.expand(len(ids), -1)),
        list("abcde"),
        list("wxyz"),
        [[0, 1], [1, 2], [2, 3], [3, 4], None],
        [[0, 1], [1, 2], [2, 3], None],
    )


def test_log_odds_by_hand() -> None:
    """p = 2 / 5 against 3 / 5; the same whatever is added to all logits."""
    logits = torch.tensor([[2.0, 1.0, 2.0]]).log()
    wanted = torch.tensor([0])
    assert log_odds(logits, wanted).item() == pytest.approx(math.log(2 / 3))
    assert log_odds(logits + 5, wanted).item() == pytest.approx(math.log(2 / 3))


def test_rows_are_output_tokens_and_columns_source_tokens() -> None:
    """Relevance sums to 1; integrated gradients to what the source changes."""
    given = reading(ALL["transformer-base"])
    (relevance, parts), notes = explain_reading(given, integrated=True)
    for found in (relevance, parts):
        assert (found.rows, found.columns) == (list("wxyz"), list("abcde"))
        assert found.row_spans == [[0, 1], [1, 2], [2, 3], None]
        assert (len(found.weights), len(found.weights[0])) == (4, 5)
    assert (relevance.signed, parts.signed) == (False, True)
    assert [sum(row) for row in relevance.weights] == pytest.approx([1.0] * 4, abs=2e-3)

    table = given.model.get_submodule("embedding")

    def absent(part: torch.nn.Module, ids: tuple[Tensor], found: Tensor) -> Tensor:
        return torch.zeros_like(found) if ids[0].shape[1] == 5 else found

    with torch.no_grad():
        full = given.scores(given.run(given.source), 1)[0]
        hook = table.register_forward_hook(absent)
        empty = given.scores(given.run(given.source), 1)[0]
        hook.remove()
    torch.testing.assert_close(
        torch.tensor(parts.weights).sum(dim=1), full - empty, atol=0.05, rtol=0.05
    )
    assert notes == []


def test_long_outputs_are_explained_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size budget: groups of output tokens share a row; the sum of their scores is explained."""
    given = reading(ALL["transformer-base"])
    whole = explain_reading(given, integrated=True)[0][1]
    monkeypatch.setattr(text_overlays, "ROWS", 2)
    (relevance, parts), notes = explain_reading(given, integrated=True)
    assert parts.rows == relevance.rows == ["w…x", "y…z"]
    assert parts.row_spans == [[0, 2], [2, 3]]
    assert "2 in a row at a time" in notes[0]
    by_hand = torch.tensor(whole.weights).unflatten(0, (2, 2)).sum(dim=1)
    torch.testing.assert_close(torch.tensor(parts.weights), by_hand, atol=2e-4, rtol=1e-2)


def test_long_texts_have_large_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row asks for every map again: of many words fewer rows are worth it, in the end one."""
    monkeypatch.setattr(text_overlays, "ENTRY", 1e12)
    (relevance,), _ = explain_reading(reading(ALL["transformer-base"]))
    assert relevance.rows == ["w…z"]


def test_what_has_no_attention_is_explained_too() -> None:
    """T3: a decoder that knows the source as one vector; the reason is said."""
    assert explain_reading(reading(SEQ2SEQS["seq2seq-lstm"]))[0] == []  # its gates are shown
    (parts,), notes = explain_reading(reading(SEQ2SEQS["seq2seq-lstm"]), integrated=True)
    assert parts.name == "integrated gradients"
    assert "Relevance is not defined here" in notes[0]
    found, notes = explain_reading(reading(SEQ2SEQS["seq2seq-lstm-attention"]), integrated=True)
    assert [each.name for each in found] == ["relevance", "integrated gradients"]
    assert "recurrent layers" in notes[0]


def imaged(
    name: str, baseline: str = "black", integrated: bool | None = False
) -> tuple[dict[str, Attribution], list[str]]:
    config = {**ALL, **IMAGES}[name]
    assert isinstance(config, Images)
    images = inputs(config)[0][:1]
    found, notes = explain_class(
        randomise(build(config)).eval(),
        images,
        target=2,
        label="cat",
        baseline=baseline,
        black=torch.full_like(images[0], -2.0),
        integrated=integrated,
    )
    return {each.name: each for each in found}, notes


def test_what_costs_much_is_left_out_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking stays quick; what is the only thing to see is computed anyway."""
    assert list(imaged("vit-b")[0]) == ["relevance", "grad-cam"]
    assert "integrated gradients" in imaged("vit-b", integrated=None)[0]
    monkeypatch.setattr(budget, "CPU", 1.0)
    found, notes = imaged("vit-b", integrated=None)
    assert list(found) == ["relevance", "grad-cam"]
    assert "`integrated=True`" in notes[-1]
    assert "integrated gradients" in imaged("vit-b", integrated=True)[0]
    assert list(imaged("mlp")[0]) == ["integrated gradients"]


@pytest.mark.parametrize("affordable", [31, 96, 1000, 2000])
def test_all_tries_together_are_affordable(affordable: int) -> None:
    """Where parts do not add up, integration begins again with twice as many steps."""
    cost = budget.limit(torch.device("cpu")) / affordable
    most, taken, steps = budget.most_steps(cost, torch.device("cpu")), 0, STEPS
    while steps <= most:
        taken, steps = taken + steps, 2 * steps
    assert taken <= affordable
    assert taken + steps > affordable or steps > MOST


def test_baselines() -> None:
    """Said in the legend; each is a way of its own, whose parts add up to another difference."""
    totals = set()
    for name, words in image_overlays.BASELINES.items():
        found = imaged("vit-b", baseline=name, integrated=True)[0]["integrated gradients"]
        assert words in found.legend
        totals.add(round(float(found.values.sum()), 3))
    assert len(totals) == 3


def test_a_blur_keeps_the_brightness() -> None:
    """The bell sums to 1, at the border too; of one colour nothing changes."""
    images = torch.full((1, 2, 9, 7), 3.0)
    found = image_overlays._baseline("blur", images, images[0])
    torch.testing.assert_close(found, images[0])


def test_many_pixels_are_shown_as_cells() -> None:
    """At most 1,024, in squares; they add up as the pixels do."""
    from manyheads.lens.attribution.integrated_gradients import Integrated

    parts = torch.rand(1, 3, 50, 70)
    found = image_overlays._of_pixels(
        Integrated(parts, parts.sum()[None], 32), "black", "cat", "the logit of cat"
    )
    assert found.grid.shape == (25, 35)
    assert found.grid.image == (50, 70)
    assert found.values.sum() == pytest.approx(float(parts.sum()), rel=1e-5)
    assert found.values[36] == pytest.approx(float(parts[0, :, 2:4, 2:4].sum()), rel=1e-5)


def test_where_tokens_are_merged_it_is_said() -> None:
    """V16, V17: the paper has no rule for it."""
    assert any("merged" in note for note in imaged("swin-t")[1])
    assert any("merged" in note for note in imaged("cvt-13")[1])
    assert not any("merged" in note for note in imaged("vit-b")[1])


def test_what_goes_to_padding_is_said() -> None:
    """V16: where libraries let tokens see it."""
    assert not any("padding" in note for note in imaged("swin-t")[1])
    assert any("padding" in note for note in imaged("swin as timm pads")[1])
