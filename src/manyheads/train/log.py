"""Metrics as JSON lines: one line a log step, readable while the run goes on."""

import json
from collections.abc import Mapping
from pathlib import Path


class MetricsLog:
    """Appends to metrics.jsonl; a resumed run first drops the lines it is about to repeat."""

    def __init__(self, path: Path, *, first_step: int) -> None:
        self.path = path
        if path.exists():
            kept = [line for line in _lines(path) if json.loads(line)["step"] <= first_step]
            temporary = path.with_name(path.name + ".tmp")
            temporary.write_text("".join(kept), encoding="utf-8")
            temporary.replace(path)

    def write(self, line: Mapping[str, float | int]) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(line)) + "\n")


def _lines(path: Path) -> list[str]:
    """Read whole lines; a line cut off by a kill is not one."""
    text = path.read_text(encoding="utf-8")
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
