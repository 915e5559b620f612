"""The loss curve as an image."""

from pathlib import Path

import pytest

from manyheads.lens.plot.charts import Mark, draw_curve

matplotlib = pytest.importorskip("matplotlib")


def test_a_png(tmp_path: Path) -> None:
    """With validation and marks, and without; its folder is made."""
    path = tmp_path / "new" / "curve.png"
    marks = [Mark(20, "spikes", "warning"), Mark(10, "diverged", "error"), Mark(5, "x", "note")]
    draw_curve([10, 20, 30], [3.0, 2.0, 1.0], [(20, 2.5)], marks, path, title="날짜 run")
    with_marks = path.read_bytes()
    draw_curve([10, 20, 30], [3.0, 2.0, 1.0], [], [], path)
    assert with_marks[:4] == path.read_bytes()[:4] == b"\x89PNG"
    assert with_marks != path.read_bytes()
