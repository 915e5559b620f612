"""What a run does that torchrun has started again: it goes on by itself."""

import os
import socket
from pathlib import Path

from manyheads.project.folder import write_json
from manyheads.strict_json import loads

LAUNCH = ".manyheads-launch"  # in the run folder, until training has finished


def launched_before(out: Path) -> bool:
    """Tell whether the same torchrun has worked in a run folder: then a rank was lost."""
    try:
        return bool(loads((out / LAUNCH).read_text(encoding="utf-8")) in _names())
    except (OSError, ValueError):
        return False


def note_launch(out: Path) -> None:
    """Write into a run folder which torchrun works there; without torchrun, nothing."""
    if names := _names():
        write_json(out / LAUNCH, names[0])


def forget_launch(out: Path) -> None:
    """Training has finished: from now on `resume` is asked for as always."""
    (out / LAUNCH).unlink(missing_ok=True)


def _names() -> list[str]:
    """Name the torchrun that has started this process: by its id, and as the parent process.

    All jobs that are started without an id have the id "none".
    """
    job = os.environ.get("TORCHELASTIC_RUN_ID")
    if job is None:
        return []
    return [job] if job != "none" else [f"{socket.gethostname()}, process {os.getppid()}"]
