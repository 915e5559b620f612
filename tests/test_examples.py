"""Examples that compute something of their own."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_near_duplicates_share_four_fifths_of_their_words() -> None:
    """Case, digits and punctuation do not count; three of four words are not enough."""
    near = runpy.run_path(str(EXAMPLES / "near_duplicates.py"))["near_duplicates"]
    train = ["Added in version 3.11.", "a b c d e", ""]
    assert near(train, ["added in Version 3.12!", "a b c d", "a b c", "...", "x"]) == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("name", ["lecture", "near_duplicates", "ladder"])
def test_without_data_an_example_says_so(name: str, tmp_path: Path) -> None:
    """In words, without a traceback."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *(["a.tsv", "b.tsv"] if "near" in name else [])],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "MANYHEADS_DATA"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert "MANYHEADS_DATA" in done.stderr
    assert "Traceback" not in done.stderr
