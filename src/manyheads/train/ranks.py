"""The processes (ranks) of one run: how they are started, and how they agree.

torchrun starts the same command several times and says in the environment which of them each
process is. Rank 0 alone writes and reports. Everything that is exchanged besides gradients goes
through one group on the CPU whose time limit is long, so that ranks may wait for a validation, and
through one function, `exchange`: where one rank fails, all others hear of it at their next
exchange, whatever that is about.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from manyheads.errors import ManyheadsError, OtherRankError, TrainingError, UsageError
from manyheads.train.device import best_device

T = TypeVar("T")

NEEDED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
PATIENCE = timedelta(days=7)  # how long a rank waits for what another does alone
EXCHANGED = "exchanged"  # attribute of an error that the other ranks have heard of
# What gloo, NCCL and the store say when a rank is gone.
LOST = (
    "gloo",
    "nccl",
    "connection closed by peer",
    "connection reset by peer",
    "broken pipe",
    "socket timeout",
    "wait timeout",
)
GONE = 2.0  # seconds in which a process that was killed has certainly ended


class LostRankError(TrainingError):
    """Another rank has ended, or cannot be reached."""


@dataclass(frozen=True)
class Launch:
    """What torchrun says to one of the processes that it started."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and reports."""
        return self.rank == 0


def launch() -> Launch:
    """Read the environment; without torchrun there is one process.

    Raises:
        UsageError: a number in the environment cannot be one; several processes, but it does not
            say how they meet.
    """
    world = _number("WORLD_SIZE", range(1, 1_000_001), default="1")
    if world == 1:
        return Launch()
    if missing := [name for name in NEEDED if not os.environ.get(name)]:
        raise UsageError(
            f"WORLD_SIZE is {world}, but {', '.join(missing)} is not set, so {world} processes "
            "cannot find each other. Start them with torchrun --nproc-per-node N -m manyheads "
            "train ..., or unset WORLD_SIZE for one process."
        )
    _number("MASTER_PORT", range(1, 65_536))
    local_world = _number("LOCAL_WORLD_SIZE", range(1, world + 1), default=str(world))
    local_rank = _number("LOCAL_RANK", range(local_world))
    return Launch(_number("RANK", range(world)), world, local_rank, local_world)


def _number(name: str, allowed: range, default: str = "") -> int:
    value = os.environ.get(name) or default
    if value.isdecimal() and len(value) < 9 and int(value) in allowed:
        return int(value)
    raise UsageError(
        f"{name} is {value!r:.40} in the environment, and must be a whole number from {allowed[0]} "
        f"to {allowed[-1]}. torchrun sets it for each process that it starts: set it as torchrun "
        "does, or unset WORLD_SIZE for one process."
    )


_alone = False  # whether rank 0 works and the others wait


def rank_and_world() -> tuple[int, int]:
    """Return the number of this process and how many there are; what works alone is one of one."""
    if not _alone and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


@contextmanager
def joined() -> Iterator[torch.device]:
    """Join the process group that torchrun announces; yield the device of this process.

    Without torchrun, or in a process group that exists already, nothing is made.

    Raises:
        UsageError: there are more processes on this host than GPUs.
    """
    here = launch()
    cuda = torch.cuda.is_available()
    device = best_device()
    if rank_and_world()[1] > 1:
        yield torch.device("cuda", torch.cuda.current_device()) if cuda else device
        return
    if here.world == 1:
        yield device
        return
    if cuda:
        if here.local_world > torch.cuda.device_count():
            raise UsageError(
                f"{here.local_world} processes were started on {socket.gethostname()}, which has "
                f"{torch.cuda.device_count()} GPUs: start one for each (--nproc-per-node), or "
                'hide the GPUs to train on the CPU (CUDA_VISIBLE_DEVICES="").'
            )
        device = torch.device("cuda", here.local_rank)
        torch.cuda.set_device(device)
    with lost_ranks():
        # A torchrun that starts its ranks again may keep its store, with the addresses of those
        # that are gone.
        store, *_ = next(rendezvous("env://"))
        store = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
        backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
        dist.init_process_group(backend, store=store, rank=here.rank, world_size=here.world)
        _control()
    try:
        yield device
    finally:
        with suppress(RuntimeError):  # the others may be gone
            dist.destroy_process_group()


@dataclass(frozen=True)
class _Control:
    """The group that values and errors are exchanged in, and the processes of all ranks."""

    world: Any  # the default group that it was made for
    group: Any
    processes: list[tuple[str, int]]  # host and number of each


_made: _Control | None = None


def _control() -> _Control:
    """Return the group of this process group; all ranks make it at their first exchange."""
    global _made
    if _made is None or _made.world is not dist.group.WORLD:
        group = dist.new_group(backend="gloo", timeout=PATIENCE)
        processes: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(processes, (socket.gethostname(), os.getpid()), group=group)
        _made = _Control(dist.group.WORLD, group, processes)
    return _made


def exchange(value: T | None = None, error: Exception | None = None) -> list[Any]:
    """Give a value to all ranks; return those of all.

    Raises:
        Exception: the error that was given.
        ManyheadsError: another rank has failed. Rank 0 says which and why, the others are silent.
    """
    rank, world = rank_and_world()
    if world == 1:
        if error is not None:
            raise error
        return [value]
    given = None
    if error is not None:
        code = error.exit_code if isinstance(error, ManyheadsError) else 1
        given = (str(error) or type(error).__name__, code)
    found: list[Any] = [None] * world
    with lost_ranks():
        dist.all_gather_object(found, (value, given), group=_control().group)
    failed = {number: each for number, (_, each) in enumerate(found) if each is not None}
    if not failed:
        return [each for each, _ in found]
    number, (text, code) = min(failed.items())
    raised: Exception
    if rank > 0:
        raised = OtherRankError(text, code)
    elif error is not None:
        raised = error
    else:
        host, _ = _control().processes[number]
        raised = TrainingError(f"Rank {number} of {world} on {host}: {text}")
    setattr(raised, EXCHANGED, True)
    raise raised from error if raised is not error else None


def on_first(work: Callable[[], T]) -> T:
    """Do something on rank 0 while the others wait; return its result on all."""
    global _alone
    rank, world = rank_and_world()
    if world == 1:
        return work()
    value, failed = None, None
    if rank == 0:
        _alone = True
        try:
            value = work()
        except Exception as error:
            failed = error
        finally:
            _alone = False
    return cast(T, exchange(value, failed)[0])


@contextmanager
def agreed() -> Iterator[None]:
    """Go on behind the block only when no rank has failed in it."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, EXCHANGED) and rank_and_world()[1] > 1:
            exchange(error=error)
        raise
    exchange()


@contextmanager
def lost_ranks() -> Iterator[None]:
    """Turn the errors of communication into a LostRankError that says which rank is gone."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        if not (isinstance(error, dist.DistError) or any(each in text.lower() for each in LOST)):
            raise
        rank, world = rank_and_world()
        lost = LostRankError(
            f"Rank {rank} of {world} stops: {_who()} ({text.strip().splitlines()[0][:120]})."
        )
        setattr(lost, EXCHANGED, True)
        raise lost from error


def _who() -> str:
    if _made is None:
        return "another rank cannot be reached"
    host = socket.gethostname()
    here = {n: process for n, (name, process) in enumerate(_made.processes) if name == host}
    end = time.monotonic() + GONE
    while time.monotonic() < end:
        if gone := [n for n, process in here.items() if _ended(process)]:
            names = ", ".join(f"rank {n} (process {here[n]} on {host})" for n in gone)
            return f"{names} has ended"
        time.sleep(0.05)
    return (
        "a rank on another host does not answer"
        if len(here) < len(_made.processes)
        else ("another rank does not answer")
    )


def _ended(process: int) -> bool:
    """Tell whether a process of this host has ended, even if its parent has not noticed."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False
    return status.rpartition(")")[2].split()[0] in "ZX"
