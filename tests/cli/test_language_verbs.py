"""generate, fill and tag: answers on stdout, one a line or as JSON; mistakes explained."""

import json
from pathlib import Path

import pytest

from manyheads.tasks.generate.predictor import Generator
from tests import language
from tests.cli.conftest import Call
from tests.exports import exported_language


@pytest.fixture(scope="module")
def models() -> dict[str, Path]:
    return {task: language.trained(task) for task in ("generate", "fill", "tag")}


def test_generate(call: Call, models: dict[str, Path]) -> None:
    """One answer a prompt, in order; lines of stdin without any."""
    code, out, err = call("generate", "--model", models["generate"], "eins", "zwei")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith("eins")
    assert second.startswith("zwei")
    piped = call("generate", "--model", models["generate"], stdin=b"eins\nzwei\n")
    assert piped.out == out


def test_generate_draws(call: Call, models: dict[str, Path]) -> None:
    """Any of the sampling options draws; the seed repeats it."""
    words = ["generate", "--model", models["generate"], "eins", "--n-best", "3", "--json"]
    drawn = [
        json.loads(call(*words, "--temperature", "2", "--top-k", "50", "--seed", seed).out)
        for seed in "112"
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0]["prompt"] == "eins"
    assert len(drawn[0]["texts"]) == 3
    assert drawn[0]["texts"][0].keys() == {"text", "log_probability", "finished"}
    assert json.loads(call(*words, "--sample").out) != drawn[0]
    beams = json.loads(call(*words).out)["texts"]
    assert len({each["text"] for each in beams}) == 3


def test_fill(call: Call, models: dict[str, Path]) -> None:
    """Proposals with probabilities; a text without a blank is a wrong call."""
    code, out, _ = call("fill", "--model", models["fill"], "eins <mask>", "--top", "2")
    assert code == 0
    assert [line.split("%")[1].split()[0] for line in out.splitlines()] == ["eins", "eins"]
    found = json.loads(call("fill", "--model", models["fill"], "<mask> zwei", "--json").out)
    assert found["text"] == "<mask> zwei"
    assert len(found["blanks"][0]) == 5
    assert found["blanks"][0][0].keys() == {"token", "probability", "text"}
    two = call("fill", "--model", models["fill"], "<mask> zwei <mask>", "--top", "1").out
    assert [line for line in two.splitlines() if "%" not in line] == ["blank 1", "blank 2"]
    code, out, err = call("fill", "--model", models["fill"], "eins")
    assert (code, out) == (2, "")
    assert "<mask>" in err


def test_tag(call: Call, models: dict[str, Path]) -> None:
    """The text spaced anew; an empty line stays one."""
    code, out, _ = call("tag", "--model", models["tag"], stdin=b"einszwei\n\nacht\n")
    assert code == 0
    assert [line.replace(" ", "") for line in out.split("\n")] == ["einszwei", "", "acht", ""]
    found = json.loads(call("tag", "--model", models["tag"], "einszwei", "--json").out)
    assert "".join(found["characters"]) == found["source"] == "einszwei"
    assert len(found["space"]) == 8
    assert found["text"] == out.split("\n")[0]


@pytest.mark.parametrize(
    ("verb", "task"),
    [("generate", "fill"), ("fill", "tag"), ("tag", "generate"), ("translate", "generate")],
)
def test_a_model_for_something_else(
    call: Call, models: dict[str, Path], verb: str, task: str
) -> None:
    """Says what the model is for."""
    code, out, err = call(verb, "--model", models[task], "eins")
    assert (code, out) == (2, "")
    assert f"its task is '{task}', so use `manyheads {task} " in err


def test_look(call: Call, models: dict[str, Path], tmp_path: Path) -> None:
    """A map in the terminal and an image; of a recurrent tagger its gates and the shapes."""
    pytest.importorskip("matplotlib")
    code, out, _ = call("look", models["fill"], "eins <mask>", "--out", tmp_path / "a.png")
    assert code == 0
    assert "encoder layer 1" in out
    assert (tmp_path / "a.png").stat().st_size > 1000
    code, out, err = call("look", models["fill"], "eins <mask>", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert "is a folder" in err
    found = json.loads(call("look", models["generate"], "eins", "--json").out)
    assert found["text"] == "eins"
    assert found["maps"]
    code, out, _ = call("look", models["tag"], "eins")
    assert code == 0
    assert "encoder layer 1 backward" in out
    assert call("look", models["tag"], "eins", "--out", tmp_path / "b.png").code == 0
    assert (tmp_path / "b.png").stat().st_size > 1000  # its gates
    assert call("look", models["tag"], "eins", "--shapes").code == 0


def test_evaluate_and_info(call: Call, models: dict[str, Path]) -> None:
    """Lines are counted, and every metric is printed."""
    code, out, _ = call("evaluate", "--model", models["tag"])
    assert code == 0
    assert "8 lines" in out
    assert "f1" in out
    assert "task                 generate" in call("info", models["generate"]).out


def test_generate_on_an_engine(call: Call, models: dict[str, Path]) -> None:
    """Greedy, with beams and with draws, as on torch; without an export it says what to do."""
    missing = call("generate", "--model", models["generate"], "--engine", "onnx", "eins")
    assert missing.code == 1
    assert "manyheads export" in missing.err
    out = exported_language("generate", Generator)[0].folder.path
    for options in ([], ["--beam", "3"], ["--sample", "--seed", "4"]):
        verb = ("generate", "--model", out, *options, "eins", "zwei drei")
        found = call(*verb, "--engine", "onnx")
        assert found.code == 0, found.err
        assert found.out == call(*verb).out
        assert len(found.out.splitlines()) == 2
