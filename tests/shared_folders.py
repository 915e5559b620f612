"""Folders that are made once a test run, by the first of its processes that needs one."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from manyheads.project.lock import locked


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled, here or in another process: look, don't touch."""
    folder = Path(os.environ["MANYHEADS_TESTS_SHARED"]) / name
    done = folder.with_name(f"{name}.done")
    with locked(folder.with_name(f"{name}.lock"), wait=True):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # where `make` failed before
            folder.mkdir(parents=True)
            make(folder)
            done.touch()
    return folder
