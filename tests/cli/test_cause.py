"""manyheads look --instead and --why, --without, and manyheads heads."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Call
from tests.made import numbers, write_lines
from tests.schema import errors

SEVEN = Path(__file__).parents[2] / "docs" / "images" / "seven.png"
BICYCLE, HORSE = "A man is riding a bicycle.", "A man is riding a horse."


def figures(answer: Any) -> dict[str, dict[str, Any]]:
    assert answer.code == 0, answer.err
    shown = [each for each in json.loads(answer.out)["figures"] if each["group"] == "cause"]
    return {each["title"].partition(":")[0]: each for each in shown}


def test_instead_finds_the_changed_word(call: Call) -> None:
    """The word that differs carries the difference; pieces are merged, and there is one scale."""
    found = figures(call("look", "multi30k-en-de", BICYCLE, "--instead", HORSE, "--json"))
    states = found["States of the encoder"]
    assert states["columns"] == ["A", "man", "is", "riding", "a", "bicycle. → horse.", "</s>"]
    assert states["rows"] == ["input", *(f"layer {n}" for n in range(1, 5))]
    assert states["values"][0] == pytest.approx([0, 0, 0, 0, 0, 1, 0], abs=1e-3)
    assert states["signed"]
    assert len(found["Heads"]["values"]) == 12
    decoder = found["States of the decoder"]["values"]
    assert decoder[-1][-1] == pytest.approx(1, abs=1e-3)  # the last state has it all


def test_both_sentences_are_told(call: Call) -> None:
    """With their translations, in JSON, page and terminal, where tables have legends."""
    words = ("look", "multi30k-en-de", BICYCLE, "--instead", HORSE)
    told = json.loads(call(*words, "--json").out)
    assert errors(told) == []
    translate = ("translate", "--model", "multi30k-en-de")
    own, other = (call(*translate, each).out.strip() for each in (BICYCLE, HORSE))
    assert (told["translation"], told["instead"]) == (own, HORSE)
    assert told["instead_translation"] == other != own
    code, out, err = call(*words, "--out", "look.html")
    assert code == 0, err
    assert f"\n{BICYCLE}  →  {own}\n{HORSE}  →  {other}\n" in out
    assert other in Path("look.html").read_text(encoding="utf-8")
    legends = [each["legend"] for each in told["figures"] if each["group"] == "cause"]
    assert legends[0].startswith("share of the difference of logits")
    assert [line for line in out.splitlines() if line in legends] == legends


def test_lengths_may_differ(call: Call) -> None:
    other = "A woman is riding a very big horse near a lake."
    found = figures(call("look", "multi30k-en-de", BICYCLE, "--instead", other, "--json"))
    assert len(found["States of the encoder"]["columns"]) == 7


@pytest.mark.parametrize("extra", [["--not", "reitet"], []])
def test_the_parts_of_an_answer_sum(call: Call, extra: list[str]) -> None:
    found = figures(call("look", "multi30k-en-de", BICYCLE, "--why", "fährt", *extra, "--json"))
    *parts, (name, total) = found["What speaks for it"]["rows"]
    assert name == "together"
    assert sum(value for _, value in parts) == pytest.approx(total, abs=2e-3)  # rounded
    names = [each for each, _ in parts]
    assert {"riding", "bicycle.", "self-attention", "feed-forward", "biases"} <= set(names)
    assert "fährt" in found["Layers and heads"]["title"]


def test_an_image_by_patches(call: Call, tmp_path: Path) -> None:
    found = figures(call("look", "digits", SEVEN, "--why", "7", "--not", "1", "--json"))
    *parts, (_, total) = found["What speaks for it"]["rows"]
    assert sum(value for _, value in parts) == pytest.approx(total, abs=2e-3)
    patches = np.array(found["Patches"]["values"])
    assert patches.shape == (4, 4)
    assert dict(parts)["patches"] == pytest.approx(patches.sum(), abs=2e-3)
    pixels = np.zeros((8, 8), np.uint8)
    pixels[:, 3:5] = 255
    Image.fromarray(pixels).save(tmp_path / "one.png")
    states = figures(call("look", "digits", SEVEN, "--instead", tmp_path / "one.png", "--json"))
    values = np.array(states["States of the encoder"]["values"])
    assert values.shape == (5, 17)
    assert values[-1] == pytest.approx([1, *[0] * 16], abs=1e-3)  # only the class token is read


RED = "A young girl in a red coat is feeding three ducks near the old bridge."


def test_without_a_state_its_word_goes(call: Call) -> None:
    """The last encoder state of "red" at zero takes "roten" away, in translate and in look."""
    words = ("--model", "multi30k-en-de", RED)
    site = "encoder layer 4 state token 5"
    assert "roten" in call("translate", *words).out
    cut = call("translate", *words, "--without", site).out
    assert cut.strip()
    assert "roten" not in cut
    looked = json.loads(call("look", "multi30k-en-de", RED, "--without", site, "--json").out)
    assert looked["translation"] == cut.strip()
    both = call("translate", *words, "--without", "encoder layer 4 state tokens 4, 5")
    assert both.code == 0
    assert "roten" not in both.out


@pytest.mark.parametrize(
    ("site", "heads", "legend"),
    [
        ("decoder layer 3 cross head 2", [2], "; head 2 taken out"),
        ("decoder layer 3 added cross", [1, 2, 3, 4], "; heads 1, 2, 3, 4 taken out"),
        ("decoder layer 3 cross head 2 token 0", None, "; every row sums to 1"),
    ],
)
def test_heads_that_are_taken_out_are_marked(
    call: Call, site: str, heads: list[int] | None, legend: str
) -> None:
    """On their map alone; the terminal has a line, which says that weights are still computed."""
    code, out, err = call("look", "multi30k-en-de", BICYCLE, "--without", site, "--json")
    assert code == 0, err
    view = json.loads(out)
    assert errors(view) == []
    marks = {each["site"]: each["taken_out"] for each in view["maps"] if each["taken_out"]}
    assert marks == ({"decoder layer 3 cross": heads} if heads else {})
    (shown,) = (each for each in view["maps"] if each["site"] == "decoder layer 3 cross")
    assert shown["legend"].endswith(legend)
    assert f"Taken out: {site}." in err
    assert ("its output is zero" in err) == (heads is not None)


def test_a_uniform_attention_is_shown_and_changes_the_answer(call: Call) -> None:
    """Every row of its map is alike; the other maps are not, and the words change."""
    named = [word for n in range(1, 5) for word in ("--uniform", f"decoder layer {n} cross")]
    plain, even = (
        json.loads(call("look", "multi30k-en-de", RED, *words, "--json").out)
        for words in ([], named)
    )
    assert even["translation"] != plain["translation"]
    assert even["model"].startswith("multi30k-en-de, uniform decoder layer 1 cross")
    for each in even["maps"]:
        alike = np.allclose(each["mean"], 1 / len(each["columns"]), atol=1e-4)
        assert alike == each["site"].endswith("cross"), each["site"]
    found = call("look", "multi30k-en-de", BICYCLE, "--uniform", "decoder layer 9 cross")
    assert (found.code, found.out) == (2, "")
    assert "did you mean 'decoder layer 4 cross pattern'" in found.err


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ("encoder layer 9 state", "did you mean 'encoder layer 4 state'"),
        ("encoder layer 4 state token red", "tokens are numbers from 0"),
        ("encoder layer 4 state token", "tokens are numbers from 0"),
        ("encoder layer 4 state token 99", "there is no token 99"),
        ("layer", "no name of a site"),
        ("decoder layer 2 cross", "did you mean 'decoder layer 2 added cross'"),
        ("encoder layer 2 self", "did you mean 'encoder layer 2 added attention'"),
        ("decoder layer 2 cross hed 2", "did you mean 'decoder layer 2 cross head 2'"),
        ("encoder layer 4 state token " + "9" * 5000, "there is no token"),
    ],
)
def test_a_site_that_there_is_not(call: Call, site: str, said: str) -> None:
    code, out, err = call("translate", "--model", "multi30k-en-de", RED, "--without", site)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["multi30k-en-de", BICYCLE, "--instead", BICYCLE], "translated alike"),
        (["multi30k-en-de", BICYCLE, "--instead", " "], "other sentence is empty"),
        (["multi30k-en-de", BICYCLE, "--why", "fahrt"], "did you mean 'fährt'"),
        (["multi30k-en-de", BICYCLE, "--why", "fährt", "--not", "fährt"], "same word"),
        (["multi30k-en-de", BICYCLE, "--not", "fährt"], "give --why"),
        (["digits", str(SEVEN), "--why", "77"], "no class '77'"),
        (["digits", str(SEVEN), "--why", "7", "--not", "7"], "the same class twice"),
        (["digits", str(SEVEN), "--instead", str(SEVEN)], "Both images are of the class"),
        (["emoji-caption", str(SEVEN), "--why", "7"], "leave --instead and --why out"),
        (["cifar10-cct-2-3x2", str(SEVEN), "--why", "cat", "--not", "dgo"], "'dog'"),
    ],
)
def test_what_cannot_be_asked(call: Call, words: list[str], said: str) -> None:
    answer = call("look", *words)
    assert answer.code == 2
    assert said in answer.err


def test_tables_in_the_terminal(call: Call) -> None:
    answer = call("look", "digits", SEVEN, "--why", "7", "--not", "1")
    assert answer.code == 0, answer.err
    assert "What speaks for it: 7, not 1" in answer.out
    assert "together" in answer.out


FEW = ["A man is riding a bicycle.", "Two dogs are running."]
WENIGE = ["Ein Mann fährt auf einem Fahrrad.", "Zwei Hunde rennen."]
# Of four words and more, which BLEU counts.
NUMBERS = [each for each in zip(*numbers(60, 5), strict=True) if len(each[0].split()) >= 4][:10]


@pytest.mark.parametrize(
    ("model", "pairs", "heads", "levels"),
    [
        (None, tuple(zip(*NUMBERS, strict=True)), 6, [1, 2, 3, 4, 5, 6]),
        pytest.param(
            "multi30k-en-de", (FEW, WENIGE), 48, [*range(6, 49, 6)], marks=pytest.mark.full
        ),
    ],
    ids=["small", "shipped"],
)
def test_what_heads_are_worth(
    call: Call,
    tmp_path: Path,
    translator: Path,
    model: str | None,
    pairs: tuple[Sequence[str], Sequence[str]],
    heads: int,
    levels: list[int],
) -> None:
    """Every head once, the least loss first; without all of them the model is worse."""
    for language, lines in zip(("en", "de"), pairs, strict=True):
        write_lines(tmp_path / f"few.{language}", lines)
    answer = call("heads", model or translator, "--data", tmp_path / "few", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert found["examples"] == len(pairs[0])
    losses = [each["loss"] for each in found["heads"]]
    assert len({each["site"] for each in found["heads"]}) == len(losses) == heads
    assert [each["value"] for each in losses] == sorted(each["value"] for each in losses)
    assert all(each["low"] <= each["value"] <= each["high"] for each in losses)
    assert [each["heads"] for each in found["without"]] == levels
    assert found["without"][-1]["score"]["value"] < found["score"]["value"]


def test_models_without_heads(call: Call) -> None:
    answer = call("heads", "korean-spacing-lstm")
    assert answer.code == 2
    assert "translators and classifiers" in answer.err
