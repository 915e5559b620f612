"""Blocks of sentences run by processes of this machine."""

import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context

from manyheads.app.bulk.blocks import Blocks, BlockTranslator, Outcome, Outcomes, Setup
from manyheads.child_process import begin_child

_own: BlockTranslator | None = None  # of a process that runs blocks


class ProcessRunner:
    """Runs blocks in so many processes, which live until all blocks have been tried."""

    restarts = 0  # if one dies, all end

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, setup: Setup, blocks: Blocks) -> Outcomes:
        """Yield outcomes; if a process dies, all end, and the other blocks have none."""
        pool = ProcessPoolExecutor(
            min(self.workers, len(blocks)),
            get_context("spawn"),
            initializer=_begin,
            initargs=(setup,),
        )
        try:
            futures = []
            with suppress(BrokenProcessPool):  # the first has died already
                for number, texts in blocks.items():
                    futures.append(pool.submit(_work, number, tuple(texts)))
            for future in as_completed(futures):
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    continue
                yield outcome
        finally:
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """Do nothing: the processes have ended."""


def _begin(setup: Setup) -> None:
    """Load the model; an interrupt is for the process that started this one."""
    global _own
    begin_child(signal.SIGINT)
    _own = BlockTranslator(setup)


def _work(block: int, texts: Sequence[str]) -> Outcome:
    assert _own is not None
    return _own.translate(block, texts)
