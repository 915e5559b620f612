"""The metrics log: one JSON line per log step, readable during the run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.errors import optional_import
from manyheads.files import append_line, write_text
from manyheads.strict_json import dumps
from manyheads.train.history import metric_lines


class MetricsLog:
    """Appends to metrics.jsonl; a resumed run first drops the lines of steps after its checkpoint.

    If `events` is a folder, TensorBoard event files are written there, too.

    Raises:
        FolderError: a line is damaged.
        MissingExtraError: event files are requested, but tensorboardX is not installed.
    """

    def __init__(self, path: Path, *, first_step: int, events: Path | None = None) -> None:
        self.path = path
        self._events: Any = None
        if events is not None:
            with optional_import("tensorboardX", extra="tensorboard"):
                from tensorboardX import SummaryWriter  # light; TensorBoard itself is for looking
            purged = first_step + 1 if first_step else None
            self._events = SummaryWriter(str(events), purge_step=purged)
        if path.exists():
            kept = [row for row, line in metric_lines(path) if line["step"] <= first_step]
            write_text(path, "".join(kept))

    def write(self, line: Mapping[str, float | int]) -> None:
        """Append one line."""
        append_line(self.path, dumps(dict(line)))
        if self._events is not None:
            step = int(line["step"])
            for name in line.keys() - {"step"}:
                self._events.add_scalar(name, line[name], step)

    def close(self) -> None:
        """Flush and close the event file."""
        if self._events is not None:
            self._events.close()


class NoLog:
    """What ranks have that do not write."""

    def write(self, line: Mapping[str, float | int]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
