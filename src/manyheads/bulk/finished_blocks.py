"""What a long job has finished, block by block, so that a job that was killed goes on."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from manyheads.errors import UsageError
from manyheads.files import reject_inputs, remove_unfinished, write_text
from manyheads.project.lock import LOCK, locked
from manyheads.strict_json import dumps, loads

_NAME = re.compile(r"[0-9a-f]{12}-[0-9]{6,}\.json|\.manyheads-.*\.part")


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
            kept = loads(self._path(block).read_text("utf-8"))
            return kept["answers"] if kept["job"] == self.job else None
        except (OSError, ValueError, KeyError, TypeError):  # not there, or damaged
            return None

    def _path(self, block: int) -> Path:
        return self.folder / f"{self.job[:12]}-{block:06}.json"


def ledger_of(out: Path) -> Path:
    """Return the folder beside a file to be written that says what is finished of it."""
    return out.with_name(f"{out.name}.parts")


def check_ledger(folder: Path, inputs: Iterable[str | PathLike[str] | int | None]) -> None:
    """Refuse a folder that is not, or not only, a ledger, before anything is written to it.

    Args:
        folder: of the ledger; it need not exist.
        inputs: what is read, as for `reject_inputs`.

    Raises:
        UsageError: there is another file, or one of the inputs.
    """
    if not folder.exists():
        return
    paths = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    for path in paths:
        if not (_NAME.fullmatch(path.name) or path.name == LOCK) or path.is_dir():
            raise UsageError(
                f"{folder} is needed for what is finished of `out`, and {path} is something else: "
                "move it away, or choose another `out`."
            )
    given = list(inputs)
    for path in paths:
        reject_inputs(path, given)


@contextmanager
def sole_ledger(folder: Path) -> Iterator[None]:
    """Keep other jobs out of a ledger, and remove it when the block ends without an error.

    Its folder stays if something else is there.

    Raises:
        UsageError: another process writes to it; the message names that process.
    """
    try:
        with locked(folder, "translates"):
            yield
            with suppress(OSError):
                for path in folder.iterdir():
                    if _NAME.fullmatch(path.name):
                        path.unlink()
    finally:
        with suppress(OSError):  # something is in it
            folder.rmdir()
