"""torch.compile: one graph without a recorder, a clear refusal with one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def findings() -> dict[str, dict[str, Any]]:
    """What `compiled.py` found, in a process without jaxtyping's hook."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.nn.compiled"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


models = pytest.mark.parametrize("model", ["Transformer", "Vit"])


@models
def test_one_graph(findings: dict[str, dict[str, Any]], model: str) -> None:
    """Asking whether a recorder is open does not split the model."""
    assert findings[model]["breaks"] == 0
    assert findings[model]["graphs"] == 1
    assert findings[model]["same"]


@models
def test_an_open_recorder_is_refused(findings: dict[str, dict[str, Any]], model: str) -> None:
    """A compiled model never answers with an empty trace: it says what to do."""
    for way in ("with breaks allowed", "full graph"):
        assert (
            "A recorder is open while a model compiled with torch.compile" in findings[model][way]
        )
        assert "uncompiled model instead (compiled._orig_mod)" in findings[model][way]
    assert findings[model]["with breaks allowed"].startswith("UsageError: A recorder")


@models
def test_an_open_edit_is_refused(findings: dict[str, dict[str, Any]], model: str) -> None:
    """A compiled model never answers as if nothing had been changed."""
    for way in ("with breaks allowed", "full graph"):
        assert "An edit is open while a model compiled" in findings[model][f"edited {way}"]
    assert findings[model]["edited with breaks allowed"].startswith("UsageError: An edit")


@models
def test_the_remedy_works(findings: dict[str, dict[str, Any]], model: str) -> None:
    """The uncompiled model has the same weights and maps; the compiled one goes on."""
    assert findings[model]["uncompiled"]
    assert findings[model]["afterwards"]
