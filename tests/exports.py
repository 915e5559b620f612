"""`manyheads export` in a process without jaxtyping's hook, which would fix the open sizes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def exported(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run `manyheads export`."""
    return subprocess.run(
        [sys.executable, "-m", "manyheads", "export", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
