"""The part of manyheads translate that gives a document to other processes: --workers, --ray."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from manyheads.cli.printed_answers import warn

if TYPE_CHECKING:
    from manyheads.asks.load_options import LoadOptions
    from manyheads.bulk.blocks import BlockRunner
    from manyheads.bulk.bulk_translator import BulkTranslator
    from manyheads.cli.progress import ProgressBar
    from manyheads.documents.fallbacks import FallbackTranslator

EVERY = 30.0  # seconds between two lines about the progress, where no bar can be drawn


@contextmanager
def processes(
    model: str, workers: int | None, ray: str | None, out: Path | None, load: "LoadOptions"
) -> Iterator[Callable[["FallbackTranslator"], "BulkTranslator"]]:
    """Make what translates sentences in other processes, and show how far it is.

    Beside `out` lies a folder with what is finished; it goes when the block ends without an error.

    Raises:
        UsageError: another process translates to `out`.
        InterruptedRunError: stopped by Ctrl-C; what is finished is kept.
    """
    from manyheads.bulk.blocks import Setup
    from manyheads.bulk.bulk_translator import BulkTranslator
    from manyheads.bulk.finished_blocks import ledger_of, sole_ledger
    from manyheads.cli.progress import ProgressBar
    from manyheads.errors import InterruptedRunError
    from manyheads.project.plugins import loaded_plugins

    ledger = None if out is None else ledger_of(out)
    bar = ProgressBar() if sys.stderr.isatty() else None
    with (
        nullcontext() if ledger is None else sole_ledger(ledger),
        closing(_runner(workers, ray)) as runner,
        bar or nullcontext(),
    ):
        shown = _Shown(runner, bar)

        def make(own: "FallbackTranslator") -> BulkTranslator:
            terms = tuple(own.glossary.entries.values())
            loaded = (model, load.engine, load.device, load.threads or 1)
            setup = Setup(*loaded, terms, own.options, own.seed, loaded_plugins())
            return BulkTranslator(own, setup, runner, ledger, shown.watch, shown.failed)

        try:
            yield make
        except KeyboardInterrupt:
            if ledger is None or not shown.done:
                raise
            raise InterruptedRunError(
                f"Interrupted: {shown.done:,} of {shown.among:,} sentences are kept in {ledger}. "
                "Give the command again to go on."
            ) from None
    shown.end()


def _runner(workers: int | None, ray: str | None) -> "BlockRunner":
    if ray is not None:
        from manyheads.bulk.ray_actors import RayRunner

        return RayRunner(ray, workers)
    from manyheads.bulk.process_runner import ProcessRunner

    assert workers is not None
    return ProcessRunner(workers)


class _Shown:
    """Shows sentences per second and failures: in the bar, or as lines in a log."""

    def __init__(self, runner: "BlockRunner", bar: "ProgressBar | None") -> None:
        self._runner, self._bar = runner, bar
        self._begun = self._told = time.monotonic()
        self._first: int | None = None  # sentences that were finished before
        self.done = self.among = 0  # sentences
        self._failures = self._restarts = 0

    def watch(self, done: int, among: int) -> None:
        """Show how many sentences are done."""
        if self._runner.restarts > self._restarts:
            self.failed(
                f"{self._runner.restarts - self._restarts} processes ended and were started again"
            )
            self._restarts = self._runner.restarts
        self.done, self.among = done, among
        now = time.monotonic()
        if self._first is None or done < self._first:
            self._first = done  # an answer that was kept, or the first one
        speed = (done - self._first) / max(now - self._begun, 1e-9)
        if self._bar is not None:
            self._bar.progress(done, among, {"sentences_per_second": speed})
        elif now - self._told >= EVERY:
            self._told = now
            warn(f"{done:,} of {among:,} sentences, {speed:,.0f} a second{self._failed()}")

    def failed(self, reason: str) -> None:
        """Count a failure, and say why."""
        self._failures += 1
        if self._bar is None:
            warn(reason)
        else:
            self._bar.say(reason)

    def end(self) -> None:
        """Say at the end what went wrong on the way."""
        if self._failures:
            warn(f"all {self.done:,} sentences are translated{self._failed()}")

    def _failed(self) -> str:
        return f"; failures: {self._failures}" if self._failures else ""
