"""Batches made ahead are those of one process, in its order."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.errors import DataError
from manyheads.train.batch_loading import load_batches


class _Numbers:
    """Batches of numbers; number 13 cannot be read."""

    def load(self, epoch: int, batches: Sequence[np.ndarray]) -> Iterator[Any]:
        for indices in batches:
            if 13 in indices:
                raise DataError("number 13 cannot be read")
            yield SimpleNamespace(x=torch.tensor(indices) + 100 * epoch)


NUMBERS: Any = _Numbers()  # the part of a task that is used


# The loader advises against more processes than cores.
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 1, 2, 5])
def test_the_same_batches_in_the_same_order(workers: int) -> None:
    plan = [np.arange(2 * i, 2 * i + 2) for i in range(5)]
    before = torch.get_rng_state()
    made = [batch.x.tolist() for batch in load_batches(NUMBERS, 1, plan, workers)]
    assert made == [[100 + 2 * i, 101 + 2 * i] for i in range(5)]
    assert torch.equal(torch.get_rng_state(), before)  # dropout is that of one process


def test_an_error_is_the_one_that_was_raised() -> None:
    plan = [np.arange(i, i + 4) for i in (0, 4, 8, 12, 16)]
    made = load_batches(NUMBERS, 0, plan, 2)
    with pytest.raises(DataError, match=r"\Anumber 13 cannot be read\Z"):
        list(made)


def test_a_stop_signal_leaves_the_processes_to_the_run() -> None:
    """Ctrl-C reaches all processes of a terminal; the run then saves its state."""
    plan = [np.array([number]) for number in range(12)]
    others = set(multiprocessing.active_children())
    made = load_batches(NUMBERS, 0, plan, 1)
    first = next(made)
    (process,) = set(multiprocessing.active_children()) - others
    assert process.pid is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(process.pid, number)
    assert [batch.x.item() for batch in (first, *made)] == list(range(12))
