"""torch.export: the batch stays open, and a text's length where it can; answers are eager's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.exported import VARIANTS
from tests.small import ALL

ROOT = Path(__file__).parents[2]


EVERY = {**ALL, **VARIANTS}
# The first of each kind, and what differs from it.
SOME = {type(EVERY[name]): name for name in sorted(EVERY, reverse=True)}.values() | VARIANTS.keys()
NAMES = [
    pytest.param(name, marks=() if name in SOME else pytest.mark.full)
    for name in [*sorted(ALL), *VARIANTS]
]


@pytest.fixture(scope="module")
def gaps(request: pytest.FixtureRequest) -> dict[str, float | str]:
    """What `exported.py` found of the tests that run, in a process without jaxtyping's hook."""
    functions = (each for each in request.session.items if isinstance(each, pytest.Function))
    mine = (each for each in functions if each.module is request.module)
    names = {str(each.callspec.params["name"]) for each in mine}
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.exported", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_model_takes_any_batch(gaps: dict[str, float | str], name: str) -> None:
    """Exported with two examples, asked with one and with three, of other lengths."""
    gap = gaps[name]
    assert isinstance(gap, float), gap
    assert gap < 1e-5
