"""The page about the doctor: it lists every finding, and its thresholds are those of the code."""

import re
from pathlib import Path

from manyheads.doctor import curves, finding, learned, output_habits, run_batches, weights
from manyheads.doctor import image_leakage as image_leaks
from manyheads.doctor import text_leakage as leaks
from manyheads.generation.output_monitor import SIGNS
from manyheads.lens.measures import idle_heads as heads
from manyheads.tasks.translate.samples import SOURCE_GAIN

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
SOURCES = "".join(
    path.read_text(encoding="utf-8")
    for folder in ("doctor", "tasks", "tokenwise")
    for path in sorted((ROOT / "src" / "manyheads" / folder).rglob("*.py"))
)


def test_every_finding_is_listed() -> None:
    """And nothing else."""
    kinds = {name.partition(":")[0] for name in finding.texts()}
    kinds |= {name.replace("_", "-") for name in SIGNS} - {"length-ratio"}
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([a-z][a-z -]+)`", row)}
    properties = {"label-in-size", "label-in-format", "label-in-colour mode"}
    assert listed == kinds - {"label-in-file"} | properties


def test_every_text_is_used() -> None:
    """A check names each entry of findings.toml, and no other."""
    used = set(re.findall(r'"([a-z]+(?:-[a-z]+)*(?::[a-z]+)?)"', SOURCES))
    assert set(finding.texts()) <= used
    called = re.findall(r'[ =]finding\(\s*"([^"]+)"', SOURCES)
    assert len(called) > 20
    assert set(called) <= set(finding.texts())


def test_the_thresholds_of_the_page() -> None:
    """As the rules have them."""
    assert (curves.LOST, curves.JUMP, curves.NOISE, curves.STILL) == (0.25, 0.10, 6.0, 0.18)
    assert (curves.LEFT, curves.WORSE, curves.MANY) == (0.5, 0.05, 200)
    assert (weights.HARDLY, weights.SMALL_STEP, weights.LARGE_STEP) == (0.1, 0.005, 0.3)
    assert (SOURCE_GAIN, run_batches.HALF, learned.ONE_ANSWER) == (0.05, 0.5, 0.95)
    assert (heads.SILENT, heads.UNIFORM, heads.ONE_TOKEN, heads.ALIKE) == (0.01, 0.99, 0.95, 0.02)
    assert (output_habits.SHORT, output_habits.LONG) == (0.85, 1.15)
    assert (leaks.SOME, leaks.MANY, leaks.GIVEN, image_leaks.TOLD) == (0.01, 0.10, 0.10, 0.95)
