"""Checks that the newest version in CHANGELOG.md is the package's version."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "manyheads" / "version.py"
CHANGELOG = ROOT / "CHANGELOG.md"


def first(pattern: str, path: Path) -> str:
    found = re.search(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if found is None:
        sys.exit(f"{path.name}: found nothing that looks like {pattern}")
    return found[1]


def main() -> None:
    version = first(r'^__version__ = "([^"]+)"$', PACKAGE)
    newest = first(r"^## \[(\d[^\]]*)\]", CHANGELOG)
    if newest != version:
        sys.exit(f"{CHANGELOG.name} is at {newest}, {PACKAGE.relative_to(ROOT)} at {version}")


if __name__ == "__main__":
    main()
