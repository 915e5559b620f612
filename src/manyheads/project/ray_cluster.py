"""A connection to a Ray cluster, or a cluster of this machine alone."""

import logging
import os
import socket
from pathlib import Path
from typing import Any

from manyheads.errors import MissingExtraError, UsageError
from manyheads.project.paths import shipped

LOCAL = "local"  # the address of a cluster that is started here, and ends with this process
CLIENT = "ray://"
REACHABLE = 10.0  # seconds to reach a cluster
# Ray tells its makers how it is used; and it logs what it repairs itself.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
# All ports of Ray are open to the network otherwise, on Linux. Nobody has to join this cluster.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def connect(address: str, processors: int | None = None) -> Any:
    """Connect to a Ray cluster, or start one on this machine; return the package `ray`.

    Args:
        address: "local" starts one, which only this machine can reach; "auto" or HOST:PORT name
            one that runs, and that this machine belongs to.
        processors: of a cluster that is started; those of the machine if None.

    Raises:
        MissingExtraError: Ray is not installed.
        UsageError: there is no cluster at the address.
    """
    if address.startswith(CLIENT):
        raise UsageError(
            f"`ray` is {address!r}, but Ray Data does not run through Ray's client. Run the "
            'command on a machine of the cluster with "auto", or as a job: ray job submit -- ...'
        )
    for name, value in (_QUIET | (_LOOPBACK if address == LOCAL else {})).items():
        os.environ.setdefault(name, value)  # read when Ray is imported
    try:
        import ray
        import ray.data
        import ray.serve
    except ModuleNotFoundError as error:
        raise MissingExtraError(package=error.name or "ray", extra="ray") from None
    given: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        given |= {"include_dashboard": False, "num_cpus": processors}
    try:
        # Refused where nobody listens; Ray itself would try for two minutes.
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACHABLE).close()
        ray.init(address=address, **given)
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        raise UsageError(
            f'There is no Ray cluster at {address!r} ({first_line(error)}). `ray` is "local" to '
            'start one here; "auto" or HOST:PORT for one that runs.'
        ) from error
    return ray


def resources(device: str | None, threads: int) -> dict[str, int]:
    """Return what Ray reserves for a model: a GPU, or processors."""
    on_gpu = device is not None and device.startswith("cuda")
    return {"num_gpus": 1} if on_gpu else {"num_cpus": threads}


def absolute_model(model: str) -> str:
    """Name a model so that other processes find it: a folder by its whole path."""
    return model if model in shipped("pretrained") else str(Path(model).absolute())


def first_line(error: BaseException) -> str:
    """Return the first line of a message; Ray's go on with a trace."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
