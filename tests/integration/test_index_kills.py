"""kill -9 at any moment while images are indexed: no vector is lost, and none is there twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.digit_search import write_digits

IMAGES = 240


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_ten_kills(tmp_path: Path) -> None:
    """Five at chosen places of a commit, five at random moments; then the index is finished."""
    write_digits(tmp_path / "images", IMAGES)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.kill_index"),
            *(str(tmp_path / "images"), str(tmp_path / "i"), "10", "1"),
        ],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    whole, *kills, last = map(json.loads, done.stdout.splitlines())
    expected = vectors(whole["whole"])
    assert len(expected) == IMAGES
    assert sum(kill["killed"] for kill in kills) >= 8
    before: dict[str, np.ndarray] = {}
    for kill in kills:
        found = vectors(kill)
        assert len(found) == kill["rows"]  # every content is different here
        assert before.keys() <= found.keys()
        for name, vector in found.items():
            assert np.array_equal(before.get(name, vector), vector)
            np.testing.assert_allclose(vector, expected[name], atol=1e-5)
        before = found
    assert 0 < len(before) < IMAGES
    assert len(vectors(last)) == last["rows"] == IMAGES
    assert last["bytes"] == whole["whole"]["bytes"] == IMAGES * 10 * 4
    assert last["answer"]["embedded"] == last["answer"]["added"] == IMAGES - len(before)
    assert vectors(last).keys() == expected.keys()


def vectors(state: dict[str, dict[str, str]]) -> dict[str, np.ndarray]:
    """The vector of each image."""
    images = state["images"].items()
    return {name: np.frombuffer(bytes.fromhex(each), "<f4") for name, each in images}
