"""Blocks of sentences run by processes of this machine."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import cast

from manyheads.bulk.blocks import BlockRunner, Blocks, BlockTranslator, Outcomes, Setup
from manyheads.child_process import begin_child


class ProcessRunner(BlockRunner):
    """Runs blocks in so many processes, which live until all blocks have been tried.

    If one dies, no more blocks are given out.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, setup: Setup, blocks: Blocks) -> Outcomes:
        """Yield outcomes; if a process dies, others finish the block they have, and all end.

        The processes are ended at once when the caller stops early, as for Ctrl-C.
        """
        context = get_context("spawn")
        processes: dict[Connection, SpawnProcess] = {}
        try:
            with _without_interrupts():
                for _ in range(min(self.workers, len(blocks))):
                    own, other = context.Pipe()
                    process = context.Process(target=_work, args=(setup, other), daemon=True)
                    process.start()
                    other.close()
                    processes[own] = process
            left = iter(blocks.items())
            busy = set(processes)
            while busy:
                for worker in cast("list[Connection]", wait(busy)):
                    try:
                        outcome = worker.recv()
                    except (EOFError, OSError):  # it died
                        left = iter(())
                        busy.remove(worker)
                        continue
                    if (block := next(left, None)) is None:
                        busy.remove(worker)
                    else:
                        with suppress(OSError):  # it died: the next `recv` says so
                            worker.send(block)
                    if outcome is not None:
                        yield outcome
        finally:
            for process in processes.values():
                process.terminate()
            for worker, process in processes.items():
                process.join()
                worker.close()

    def close(self) -> None:
        """Do nothing: the processes have ended."""


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the end; processes that are started meanwhile never hear of it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its own start would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(setup: Setup, asked: Connection) -> None:
    """Ask for blocks and translate them; Ctrl-C is for the process that started this one."""
    begin_child(signal.SIGINT)
    own = BlockTranslator(setup)
    with suppress(EOFError, OSError):  # that process has ended
        asked.send(None)
        while True:
            asked.send(own.translate(*asked.recv()))
