"""Devices, threads and autocast precision."""

import contextlib
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from manyheads.errors import OutOfMemoryError, UsageError, nearest
from manyheads.memory import is_out_of_memory
from manyheads.train.train_config import Precision

# Parameters below which more threads cost more than they bring: docs/decisions/threads.md.
SMALL = 50_000_000
MOST_THREADS = 1024  # OpenMP ends the process where it cannot start so many


def set_threads(threads: int) -> int:
    """Set the number of threads for tensor operations, 0 for torch's default; return it.

    Raises:
        UsageError: there are too many.
    """
    if threads > MOST_THREADS:
        raise UsageError(f"threads is {threads}: it must be at most {MOST_THREADS}.")
    if threads > 0:
        torch.set_num_threads(threads)
    return torch.get_num_threads()


def inference_threads(model: nn.Module) -> int | None:
    """Return how many threads inference uses on a CPU; None: as many as torch has.

    A model below `SMALL` parameters uses one, unless OMP_NUM_THREADS says otherwise.
    """
    return threads_for(sum(each.numel() for each in model.parameters()))


def threads_for(parameters: int) -> int | None:
    """Return the same for a model with so many parameters."""
    return None if parameters >= SMALL or os.environ.get("OMP_NUM_THREADS") else 1


@contextlib.contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Run tensor operations on so many threads, then on as many as before; None: no change."""
    before = torch.get_num_threads()
    set_threads(threads or before)
    try:
        yield
    finally:
        set_threads(before)


def random_state(device: torch.device) -> list[Tensor]:
    """Return the states of the generators that draws on a device come from: the CPU's, its own."""
    own = [] if device.type == "cpu" else [torch.get_device_module(device).get_rng_state(device)]
    return [torch.get_rng_state(), *own]


def set_random_state(device: torch.device, states: Sequence[Tensor]) -> None:
    """Draw on a device as when `random_state` returned these."""
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1], device)


def best_device() -> torch.device:
    """Return a GPU if torch can use one, otherwise the CPU."""
    return _made_ready(torch.device("cuda" if torch.cuda.is_available() else "cpu"))


def _made_ready(device: torch.device) -> torch.device:
    """Switch cuDNN's attention off for a GPU: it plans anew for every size of a batch.

    0.5 s instead of 0.05 s an update of a small translator, whose batches differ in size, on an
    H200: docs/decisions/gpu.md.
    """
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def find_device(name: str | None) -> torch.device:
    """Return the device of this name, such as "cpu" or "cuda:0"; the best there is if None.

    Raises:
        UsageError: torch does not know the name, or cannot use the device here.
    """
    if name is None:
        return best_device()
    try:
        device = torch.device(name)
    except RuntimeError:
        known = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        raise UsageError(
            f"There is no device {name!r}{nearest(name, known)}Devices: {', '.join(known)}."
        ) from None
    try:
        torch.ones(1, device=device).item()  # "meta" is a device, but it holds no values
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise UsageError(
            f'The device {name!r} cannot be used here: {reason}. Try "cpu", or leave `device` out.'
        ) from None
    return _made_ready(device)


@contextlib.contextmanager
def memory_errors(advice: str) -> Iterator[None]:
    """Turn a failed allocation, on whichever device, into an OutOfMemoryError with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error) or "overflowed" in str(error):
            raise OutOfMemoryError(f"Memory does not suffice. {advice}") from error
        raise


def autocast(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[None]:
    """Compute matrix products in bf16 if `precision` is bf16. Never fp16: it is slow on a CPU.

    "auto" is resolved before (`precision.py`).
    """
    if precision == "fp32":
        return contextlib.nullcontext()
    assert precision == "bf16"
    return torch.autocast(device.type, dtype=torch.bfloat16)


def multiplies_bf16(device: torch.device) -> bool:
    """Return whether a device has instructions for bf16. A CPU without takes 70 times as long."""
    if device.type == "cpu":  # torch without oneDNN, as on a Mac, has no such products
        onednn = torch.backends.mkldnn.is_available()
        return onednn and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)


def processor() -> str:
    """Return the name of the processor, to be reported with measured times."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
