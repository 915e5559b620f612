"""One policy for devices, threads and precision."""

import contextlib
import platform
from pathlib import Path

import torch

from manyheads.train.config import Precision


def set_threads(threads: int) -> int:
    """Set the threads for tensor operations, 0 for as many as torch finds; return the number."""
    if threads > 0:
        torch.set_num_threads(threads)
    return torch.get_num_threads()


def best_device() -> torch.device:
    """Prefer a GPU if torch can use one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def autocast(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[None]:
    """Compute matrix products in bf16 if the recipe says so. Never fp16: a CPU is lost with it.

    "auto" has been decided before (`precision.py`).
    """
    if precision == "fp32":
        return contextlib.nullcontext()
    assert precision == "bf16"
    return torch.autocast(device.type, dtype=torch.bfloat16)


def processor() -> str:
    """Name the processor, for whoever reads a measured time."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
