"""A progress bar on stderr for a training run, or other work in steps."""

import sys
import time
from contextlib import suppress

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from manyheads.cli.terminal import ReaderGoneError, console, visible
from manyheads.errors import OutputError
from manyheads.fit.observer import PrintObserver

EVERY = 0.1  # seconds between two drawings; a step may take much less


class ProgressBar(PrintObserver):
    """Shows loss, learning rate, speed and time left; prints validations as they come."""

    def __init__(self) -> None:
        self.console = console(sys.stderr)
        self._bar = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left {task.fields[left]}"),
            console=self.console,
            auto_refresh=False,
            expand=True,
        )
        self._task = self._bar.add_task("", total=None, visible=False, left="?")
        self._drawn = 0.0
        self._first: tuple[float, int] | None = None

    def __enter__(self) -> "ProgressBar":
        """Draw the bar."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bar as it stands."""
        with suppress(ReaderGoneError, OutputError):
            self._bar.refresh()
            self._bar.stop()

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        self.console.print(visible(message))

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        """Move the bar."""
        now = time.monotonic()
        self._first = self._first or (now, step)
        if now - self._drawn < EVERY and step < steps:
            return
        self._drawn = now
        began, first = self._first
        left = (now - began) / (step - first) * (steps - step) if step > first else None
        speed = "".join(
            f" {value:,.0f} {name.removesuffix('_per_second')}/s"
            for name, value in line.items()
            if name.endswith("_per_second")
        )
        trained = (
            f"loss {line['loss']:.3f} lr {line['learning_rate']:.1e}" if "loss" in line else ""
        )
        described = f"{trained}{speed}".strip()
        self._bar.update(
            self._task,
            completed=step,
            total=steps,
            description=described,
            left="?" if left is None else f"{int(left) // 60}:{int(left) % 60:02d}",
            visible=True,
            refresh=self.console.is_terminal,
        )
