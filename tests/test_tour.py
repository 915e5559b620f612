"""The tour's list of files and its line counts are true, and the path stays short."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")


def listed() -> list[tuple[Path, int]]:
    """Read the numbered rows of the tour: file and lines."""
    rows = re.findall(r"^\| \d+ \| \[.*?\]\(\.\./(.*?)\) \| (\d+) \|", TOUR, flags=re.MULTILINE)
    return [(ROOT / path, int(lines)) for path, lines in rows]


def test_the_path_from_the_command_line_to_the_kernel_is_eight_files_and_about_1200_lines() -> None:
    """The tour states each file's length and the total; both are counted here."""
    files = listed()
    counted = [len(path.read_text(encoding="utf-8").splitlines()) for path, _ in files]
    assert len(files) == 8
    assert [lines for _, lines in files] == counted, "update the line counts in docs/tour.md"
    assert f"Together: {sum(counted):,} lines." in TOUR
    assert sum(counted) <= 1_250
