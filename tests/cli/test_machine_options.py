"""--engine, --device and --threads: of every command that runs a model."""

from pathlib import Path

import pytest
import torch

from tests.cli.conftest import Call

VERBS = ["translate", "classify", "generate", "fill", "tag", "evaluate", "compare", "look"]


@pytest.mark.parametrize("verb", [*VERBS, "doctor"])
def test_every_command_has_them(call: Call, verb: str) -> None:
    """In a panel of their own; doctor looks into weights, which no other engine has."""
    help_text = call(verb, "--help").out
    assert {"--device", "--threads"} <= set(help_text.split())
    assert ("--engine" in help_text.split()) == (verb != "doctor")


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_not_there(call: Call, translator: Path, verb: str) -> None:
    """Refused before anything is run, with what there is."""
    words = [translator, "nine"] if verb == "look" else ["--model", translator]
    words = [translator, translator] if verb == "compare" else words
    code, out, err = call(verb, *words, "--engine", "onxx")
    assert (code, out) == (2, "")
    assert "There is no engine 'onxx': did you mean 'onnx'? Engines: torch, " in err
    code, out, err = call(verb, *words, "--device", "gpu")
    assert (code, out) == (2, "")
    assert "There is no device 'gpu'" in err
    assert call(verb, *words, "--threads", "0").code == 2


def test_they_change_no_answer(call: Call, translator: Path) -> None:
    """And the process has as many threads as before."""
    before = torch.get_num_threads()
    plain = call("translate", "--model", translator, "nine")
    words = ("--engine", "torch", "--device", "cpu", "--threads", "2")
    assert call("translate", "--model", translator, "nine", *words) == plain
    assert torch.get_num_threads() == before
    code, _, err = call("doctor", translator, "--device", "meta")
    assert code == 2
    assert "'meta' cannot be used here" in err
    assert "leave --device out" in err
