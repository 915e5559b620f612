"""The options of `manyheads look` that ask for figures."""

import json
from pathlib import Path

from tests.cli.conftest import Call
from tests.made import image_size


def test_figures_reference_and_word(call: Call, translator: Path, tmp_path: Path) -> None:
    """A PNG with all panels, the table of the reference on the terminal, the same in JSON."""
    asked = ("--reference", "vier drei", "--word", "three", "--also", "three five")
    code, out, err = call(
        "look",
        translator,
        "three four",
        *asked,
        "--out",
        "look.json",
        "--figures",
        "deep/figures.png",
    )
    assert code == 0, err
    assert "How surprised the model was by each word of your translation" in out
    assert "-log p" in out
    assert "wrote deep/figures.png" in err
    assert min(image_size(tmp_path / "deep" / "figures.png")) > 600
    view = json.loads((tmp_path / "look.json").read_text(encoding="utf-8"))
    found = [each["group"] for each in view["figures"]]
    assert found[:4] == ["loss", "word", "word", "word"]
    assert view["figures"][0]["columns"] == ["token", "p", "-log p"]


def test_a_word_that_is_not_there(call: Call, translator: Path) -> None:
    """Before anything is computed."""
    code, out, err = call("look", translator, "three four", "--word", "seven")
    assert (code, out) == (2, "")
    assert "does not have the word 'seven'" in err
