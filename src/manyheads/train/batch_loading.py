"""Batches made ahead of the updates that need them, in processes of their own.

Worth it where a GPU makes an update faster than one process augments and encodes the next batch.
"""

import signal
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from manyheads.train.interrupt import SIGNALS
from manyheads.train.training_task import B, Indices, Task

AHEAD = 4  # batches that each process keeps ready


def load_batches(task: Task[B], epoch: int, plan: Sequence[Indices], workers: int) -> Iterator[B]:
    """Make the planned batches in order: the same ones, however many processes (`workers`) do.

    Without any, each batch is made here, when it is needed.
    """
    if not workers:
        yield from task.load(epoch, plan)
        return
    loader = DataLoader(
        _Share(task, epoch, plan),
        batch_size=None,
        num_workers=min(workers, len(plan)),
        multiprocessing_context="fork",  # the data is not copied
        prefetch_factor=AHEAD,
        collate_fn=lambda batch: batch,
        worker_init_fn=_stop_with_the_run,
        generator=torch.Generator(),  # or the loader would draw a number from that of the run
    )
    for batch in loader:
        if isinstance(batch, Exception):
            raise batch
        yield batch


class _Share(IterableDataset[B | Exception]):
    """Every n-th batch of the plan in each of n processes, which the loader asks in turns."""

    def __init__(self, task: Task[B], epoch: int, plan: Sequence[Indices]) -> None:
        self.task, self.epoch, self.plan = task, epoch, plan

    def __iter__(self) -> Iterator[B | Exception]:
        process: Any = get_worker_info()
        mine = self.plan[process.id :: process.num_workers]
        try:
            yield from self.task.load(self.epoch, mine)
        except Exception as error:  # without the loader's traceback
            yield error


def _stop_with_the_run(_process: int) -> None:
    """Leave Ctrl-C to the run, which still saves its state: the loader ends its processes."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
