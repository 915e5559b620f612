"""Checkpoints that several ranks write together, and that any number of ranks can read.

torch.distributed.checkpoint, in its safetensors format: each rank writes the tensors, or parts of
tensors, that are its own to a file, whose header says where they belong. Nothing is pickled.

It takes a second to import, and one process never needs it: so only where it is used.
"""

import shutil
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from manyheads.errors import FolderError, ManyheadsError
from manyheads.files import UNFINISHED, cannot_write, flush, output_errors
from manyheads.train.ranks import agreed, lost_ranks, on_first, rank_and_world


class BackgroundWriter:
    """Writes checkpoints while training goes on, one at a time; what is written is copied first.

    The ranks talk about it in a group of its own, as they train meanwhile.
    """

    def __init__(self) -> None:
        self._group = dist.new_group(backend="gloo")
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._pending: Future[None] | None = None

    def write(
        self,
        final: Path,
        state: Mapping[str, Tensor],
        complete: Callable[[Path], None],
        tidy: Callable[[], None],
    ) -> None:
        """Begin to write a checkpoint; its folder gets its name when all of it is there.

        `state` has whole tensors, which are the same on all ranks, or DTensors. On rank 0
        `complete` is called with the folder when all are in it, and `tidy` when it has its name.
        """
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
        from torch.distributed.checkpoint.state_dict_saver import async_save

        self.finish()
        folder = final.with_name(UNFINISHED.format(final.name))
        on_first(partial(_clear, final, folder))
        # `finish` of this writer has nothing to write: the files' headers say all.
        writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
        saved = async_save(dict(state), storage_writer=writer, process_group=self._group)
        first = rank_and_world()[0] == 0
        name = partial(_name, final, folder, complete, tidy) if first else None
        self._pending = self._thread.submit(_complete, saved, final, name)

    def finish(self) -> None:
        """Wait until the checkpoint that was begun has its name.

        Raises:
            OutputError: it could not be written; earlier ones are as they were.
            TrainingError: another rank is gone.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            with agreed():
                pending.result()


def _clear(final: Path, folder: Path) -> None:
    with output_errors(final):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


def _complete(saved: Any, final: Path, name: Callable[[], None] | None) -> None:
    """Wait for what all ranks write; on rank 0, give the folder its name."""
    try:
        with lost_ranks():
            saved.result()
        if name is not None:
            name()
    except ManyheadsError:
        raise
    except BaseException as error:  # torch's CheckpointException is no Exception
        raise cannot_write(final, _cause(error)) from error


def _cause(error: BaseException) -> str:
    """Return what went wrong on the first of the ranks that failed."""
    failures = getattr(error, "failures", None)
    return str(failures[min(failures)][0] if failures else error)


def _name(
    final: Path, folder: Path, complete: Callable[[Path], None], tidy: Callable[[], None]
) -> None:
    complete(folder)
    with output_errors(final):
        for path in (*folder.iterdir(), folder):
            flush(path)
        folder.rename(final)  # atomic: from here on it exists
        flush(final.parent)
    tidy()


def shapes(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint without their content, on the meta device."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    found = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    return {
        name: torch.empty(each.size, dtype=each.properties.dtype, device="meta")
        for name, each in found.items()
        if isinstance(each, TensorStorageMetadata)
    }


def read(folder: Path, state: dict[str, Tensor]) -> None:
    """Read a checkpoint into these tensors, whole or spread over the ranks as they are.

    Raises:
        FolderError: it cannot be read.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = HuggingFaceStorageReader(str(folder))
    with warnings.catch_warnings():  # it says that one process is one
        warnings.filterwarnings("ignore", "torch.distributed is", UserWarning)
        try:
            load(state, storage_reader=reader, no_dist=rank_and_world()[1] == 1)
        except CheckpointException as error:  # no Exception
            raise FolderError(f"{folder} cannot be read: {_cause(error)}") from error
