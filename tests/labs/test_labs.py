"""Every experiment runs from its question to its page, in seconds."""

import json
from pathlib import Path

import pytest

from manyheads.errors import NotFoundError
from manyheads.labs.catalogue import CATALOGUE, find
from manyheads.labs.findings import SCHEMA
from manyheads.labs.run_experiment import read, run_lab


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_smoke_run(name: str, root: Path, tmp_path: Path) -> None:
    """Result, figure and page are there, and the notebook is gone."""
    result = run_lab(name, tmp_path, scale="smoke", root=str(root))
    assert read(tmp_path / f"{name}.json") == result
    plain = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert plain["schema"] == SCHEMA
    assert "NaN" not in (tmp_path / f"{name}.json").read_text(encoding="utf-8")
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    for part in (result.question, result.conclusion, result.method, result.limits, "smoke run"):
        assert part in text
    assert result.conclusion.endswith(".")
    assert result.tables
    assert result.panels
    for table in result.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".md", ".png"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_experiment_tells_how_and_what_it_cannot_show(name: str) -> None:
    """In sentences, and with at least one seed."""
    lab = find(name)
    assert lab.method.endswith(".")
    assert lab.limits.endswith(".")
    assert lab.seeds >= 1


@pytest.mark.parametrize("name", ["grid", "resolution"])
def test_missing_pictures(name: str, tmp_path: Path) -> None:
    """The message says how to get them."""
    with pytest.raises(NotFoundError, match="manyheads fetch cifar10"):
        run_lab(name, tmp_path / "out", scale="smoke", root=str(tmp_path))
