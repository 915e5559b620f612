"""A progress bar on stderr for a training run, or other work in steps."""

import sys
import time
from contextlib import suppress

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from manyheads.cli.terminal import ReaderGoneError, console, visible
from manyheads.errors import OutputError
from manyheads.fit.observer import PrintObserver, described


class ProgressBar(PrintObserver):
    """Shows loss, learning rate, speed and time left; prints validations as they come.

    Before the first step it shows how long the work has gone on: a vocabulary takes a while.
    """

    def __init__(self) -> None:
        self.console = console(sys.stderr)
        self._bar = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            expand=True,
        )
        self._task = self._bar.add_task("", total=None)
        self._first: tuple[float, int] | None = None  # second and step of the first call

    def __enter__(self) -> "ProgressBar":
        """Draw the bar; where stderr is no terminal, there is none."""
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bar as it stands, if there was a step."""
        if not self.console.is_terminal:
            return
        self._bar.update(self._task, visible=self._first is not None)
        with suppress(ReaderGoneError, OutputError):
            self._bar.stop()

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        self.console.print(visible(message), soft_wrap=not self.console.is_terminal)

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        """Move the bar; where there is none, print the lines of the log.

        A line without the time left gets it from the mean time of a step since the first call.
        """
        if not self.console.is_terminal:
            super().progress(step, steps, line)
            return
        now = time.monotonic()
        began, first = self._first = self._first or (now, step)
        if step > first:
            line = {"seconds_left": (now - began) / (step - first) * (steps - step), **line}
        self._bar.update(self._task, completed=step, total=steps, description=described(line))
