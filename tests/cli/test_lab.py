"""manyheads lab."""

import json
import sys
from pathlib import Path

import pytest

from manyheads.labs.catalogue import CATALOGUE
from tests.cli.conftest import Call


def test_list(call: Call) -> None:
    """What there is, what it answers, and its question; as JSON too."""
    found = call("lab")
    assert found.code == 0
    assert len(found.out.splitlines()) == len(CATALOGUE)
    assert "depth       T11           What do residual connections" in found.out
    listed = json.loads(call("lab", "--json").out)
    assert listed["basis"]["atlas"] == ["T8a", "E11"]


def test_run(call: Call, tmp_path: Path) -> None:
    """The sentence comes last on stdout; the files are named on stderr."""
    found = call("lab", "patches", "--quick", "--out", tmp_path / "out")
    assert found.code == 0, found.err
    assert found.out.splitlines()[-1].startswith("A picture of 224 x 224 in patches of 16 is 196")
    assert "quick run" in found.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "patches.json",
        "patches.md",
        "patches.png",
    }


def test_json(call: Call, tmp_path: Path) -> None:
    """One document, the same as the file."""
    found = call("lab", "patches", "--quick", "--json", "--out", tmp_path)
    assert json.loads(found.out) == json.loads((tmp_path / "patches.json").read_text())


def test_a_quick_run_does_not_take_the_place_of_a_full_one(call: Call, tmp_path: Path) -> None:
    """A full run may have taken 45 minutes."""
    assert call("lab", "patches", "--out", tmp_path).code == 0
    full = (tmp_path / "patches.json").read_bytes()
    found = call("lab", "patches", "--quick", "--json", "--out", tmp_path)
    assert found.code == 2
    assert "is the result of a full run" in found.err
    assert (tmp_path / "patches.json").read_bytes() == full
    again = call("lab", "patches", "--json", "--seeds", "2", "--out", tmp_path)
    assert again.code == 0
    assert "more seeds change nothing" in again.err
    assert f"wrote {tmp_path / 'patches'}" in again.err


def test_wrong_calls(call: Call) -> None:
    """A name that is close, a number that is not one."""
    found = call("lab", "dept")
    assert found.code == 2
    assert "did you mean 'depth'?" in found.err
    assert call("lab", "depth", "--seeds", "0").code == 2


def test_missing_data(call: Call, tmp_path: Path) -> None:
    """What to fetch, and no traceback."""
    found = call("lab", "grid", "--quick", "--root", tmp_path, "--out", tmp_path / "out")
    assert found.code == 2
    assert "manyheads fetch cifar10" in found.err
    assert "Traceback" not in found.err


def test_without_matplotlib_there_is_no_picture(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers and the page need none; the command that installs it is named."""
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    found = call("lab", "patches", "--quick", "--out", tmp_path / "out")
    assert found.code == 0, found.err
    assert "pip install 'manyheads[plot]'" in found.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"patches.json", "patches.md"}
    assert ".png" not in (tmp_path / "out" / "patches.md").read_text(encoding="utf-8")
