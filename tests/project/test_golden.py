"""The shipped models answer what they answered when `scripts/golden.py` recorded them.

Texts and classes are equal on any machine; scores and logits agree within rounding, which is the
processor's. The digests in the file are for `scripts/golden.py --check`, on the machine that
recorded.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "shipped.json").read_text(encoding="utf-8"))
# Of the largest number of a part. From SSE to AVX512, numbers differ by less than 3e-6.
TOLERANCE = 1e-4


@cache
def recorded() -> dict[str, Any]:
    """Ask every shipped model, as the script does, and take the answers through JSON.

    In a process of its own: without the hook that checks shapes, three times as fast.
    """
    done = subprocess.run(
        [sys.executable, "-c", "import golden, json; print(json.dumps(golden.record()))"],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def numbers(answer: Any) -> list[float]:
    """Every number of an answer, in order."""
    if isinstance(answer, float):
        return [answer]
    inside = answer.values() if isinstance(answer, dict) else answer
    return [] if isinstance(answer, str) else [each for part in inside for each in numbers(part)]


def words(answer: Any) -> Any:
    """An answer without its numbers: texts, classes and how they are nested."""
    if isinstance(answer, dict):
        return {key: words(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [words(each) for each in answer]
    return "a number" if isinstance(answer, float) else answer


def same(found: Any, kept: Any) -> None:
    """Refuse another text or nesting, and a number further off than the tolerance."""
    assert words(found) == words(kept)
    scale = max(map(abs, numbers(kept)), default=0.0)
    assert numbers(found) == pytest.approx(numbers(kept), rel=0, abs=TOLERANCE * scale)


def test_every_model_is_recorded() -> None:
    assert recorded().keys() == GOLDEN.keys()


@pytest.mark.parametrize(
    ("name", "part"),
    [(name, part) for name in GOLDEN for part in GOLDEN[name] if not part.startswith("sha256")],
)
def test_a_shipped_model_answers_as_recorded(name: str, part: str) -> None:
    """Greedy and beam search with scores; classes and logits; spaces."""
    assert recorded()[name].keys() == GOLDEN[name].keys()
    same(recorded()[name][part], GOLDEN[name][part])


def test_what_counts_as_the_same() -> None:
    kept = [[{"text": "a", "score": -2.0}], [["b", 0.5]]]
    same([[{"text": "a", "score": -2.00019}], [["b", 0.50019]]], kept)
    for other in (
        [[{"text": "a", "score": -2.00021}], [["b", 0.5]]],
        [[{"text": "x", "score": -2.0}], [["b", 0.5]]],
        [[{"text": "a", "score": -2.0}], [["b", 0.5], ["b", 0.5]]],
        [[{"text": "a"}], [["b", 0.5]]],
    ):
        with pytest.raises(AssertionError):
            same(other, kept)
