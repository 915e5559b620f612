"""The tour's list of files is the path that a training run takes, and its line counts are true."""

import inspect
import re
import sys
from pathlib import Path
from types import FrameType

from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.made import TRANSLATE, write_numbers, write_recipe

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "manyheads"
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| \d+ \| \[.*?\]\(\.\./(.*?)\) \| (\d+) \|", flags=re.MULTILINE)
LISTED = {ROOT / path: int(lines) for path, lines in ROW.findall(TOUR)}


def test_the_line_counts_are_true() -> None:
    """The tour states each file's length and the total; the path stays short enough to read."""
    counted = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in LISTED}
    wrong = {path.name: lines for path, lines in counted.items() if LISTED[path] != lines}
    total = sum(counted.values())
    assert wrong == {}, f"write into docs/tour.md: {wrong}; together {total:,}"
    assert f"{len(LISTED)} files, {total:,} lines." in TOUR, (
        f'write "{len(LISTED)} files, {total:,} lines." into docs/tour.md'
    )
    assert len(LISTED) <= 13
    assert total <= 2_300


def test_a_run_passes_through_every_file(
    call: Call,  # noqa: F811
    tmp_path: Path,
) -> None:
    """A function of each is called: task and model of the shipped recipe, in a small size.

    Nothing is left out where the path is complete: pipeline, blocks and attention.
    """
    write_numbers(tmp_path)
    recipe = write_recipe(tmp_path / "numbers.toml", TRANSLATE, tmp_path)
    called: set[Path] = set()

    def watch(frame: FrameType, event: str, arg: object) -> None:
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function, no body of a class or module
            called.add(Path(frame.f_code.co_filename))

    before = sys.gettrace()
    sys.settrace(watch)  # hears of Python functions that are called, and of nothing inside them
    try:
        found = call("train", recipe, "train.steps=1")
    finally:
        sys.settrace(before)
    assert found.code == 0, found.err
    assert set(LISTED) - called == set()
    complete = [SOURCE / name for name in ("nn/blocks", "nn/attention")]
    entered = {path for path in called if path.parent in complete}
    assert entered - set(LISTED) == {SOURCE / "nn" / "attention" / "rotary.py"}  # it turns nothing
