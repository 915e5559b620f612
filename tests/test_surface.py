"""What a user sees stays: commands, recipes, public names, the API, and what pages import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.surface import AGAIN, GOLDEN, differences, without_modules

SCRIPT = Path(__file__).parents[1] / "scripts" / "surface.py"


def test_a_user_sees_what_was_recorded() -> None:
    """In a process of its own: here, other tests may have registered presets and tasks."""
    command = [sys.executable, str(SCRIPT), "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    told = differences(json.loads(GOLDEN.read_text(encoding="utf-8")), json.loads(done.stdout))
    assert not told, (
        "\n".join(told)
        + "\n\nA user sees something else than tests/golden/surface.json has. If that is meant, "
        f"record it: `{AGAIN}`; its diff then shows the change, and CHANGELOG.md tells users."
    )


def test_every_import_of_pages_and_examples_works() -> None:
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))["imports"]
    assert not [words for words in recorded if ":" in words]


def test_differences_are_named() -> None:
    before = {"commands": {"go": {"--fast": {"min": 1}, "--slow": {"min": 1}}}, "names": ["a", "b"]}
    now = {"commands": {"go": {"--fast": {"max": 3}}, "stay": {}}, "names": ["a"]}
    assert differences(before, before) == []
    assert differences(before, now) == [
        "missing: commands > go > --fast > min",
        "missing: commands > go > --slow",
        "changed: names: ['b'] became []",
        "new: commands > go > --fast > max",
        "new: commands > stay",
    ]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("dict[str, torch.nn.modules.Module] | None", "dict[str, Module] | None"),
        ("<function a.<locals>.b at 0x7f1>", "<function b>"),
        ("1e-06 and 0.5", "1e-06 and 0.5"),
    ],
)
def test_names_are_without_modules(text: str, short: str) -> None:
    assert without_modules(text) == short
