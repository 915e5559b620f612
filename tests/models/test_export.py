"""torch.export: the batch stays open, and a text's length where it can; answers are eager's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.exported import VARIANTS
from tests.small import ALL

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def gaps() -> dict[str, float | str]:
    """What `exported.py` found, in a process without jaxtyping's hook."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.exported"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", [*sorted(ALL), *VARIANTS])
def test_an_exported_model_takes_any_batch(gaps: dict[str, float | str], name: str) -> None:
    """Exported with two examples, asked with one and with three, of other lengths."""
    gap = gaps[name]
    assert isinstance(gap, float), gap
    assert gap < 1e-5
