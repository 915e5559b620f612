"""What a long job has finished, block by block, so that a job that was killed goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

from manyheads.files import remove_unfinished, write_text
from manyheads.strict_json import dumps


class Ledger:
    """A folder with a file for each finished block; what another job left there does not count.

    A file appears whole or not at all, so a process may be killed at any time.
    """

    def __init__(self, folder: Path, job: str) -> None:
        """Open or begin it; `job` identifies everything that the answers depend on."""
        self.folder = folder
        self.job = job
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)

    def keep(self, block: int, answers: Any) -> None:
        """Write down that a block is finished, and its answers."""
        write_text(self._path(block), dumps({"job": self.job, "answers": answers}))

    def finished(self, block: int) -> Any | None:
        """Return the answers of a block; None if it is not finished."""
        try:
            found = json.loads(self._path(block).read_text("utf-8"))
            return found["answers"] if found["job"] == self.job else None
        except (OSError, ValueError, KeyError, TypeError):  # not there, or damaged
            return None

    def _path(self, block: int) -> Path:
        return self.folder / f"{self.job[:12]}-{block:06}.json"


def forget(folder: Path) -> None:
    """Remove the folder of a job that is done."""
    shutil.rmtree(folder, ignore_errors=True)
