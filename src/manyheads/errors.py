"""Everything Manyheads raises on purpose.

One tree, so that a caller catches as widely or as narrowly as it likes::

    ManyheadsError                     exit 1    the work failed
    ├── UsageError                     exit 2    the call was wrong
    │   ├── RecipeError                          a key or value in a recipe
    │   ├── NotFoundError                        a model, recipe or file that was named
    │   └── MissingExtraError                    an optional dependency
    ├── DataError                                files, encodings, counts, images
    │   └── UnreadableError                      one image
    ├── FolderError                              a run or model folder
    │   └── ChangedFolderError                   its files are others than before
    ├── OutOfMemoryError                         a model or its input is too large
    ├── WorkerError                              processes that do a part of the work
    ├── OutputError                              a file or folder that cannot be written
    ├── TrainingError                            a training run
    │   └── NonFiniteLossError                   the loss became inf or nan
    ├── InterruptedRunError            exit 130  stopped from outside, state saved
    └── OtherRankError                           another process of the run reports the error

A message says what went wrong, what was given, what is allowed and what to do. The command line
prints it without a traceback and leaves with the error's ``exit_code``.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import ClassVar

__all__ = ["ChangedFolderError", "DataError", "FolderError", "InputWarning", "InterruptedRunError"]
__all__ += ["ManyheadsError", "MissingExtraError", "NonFiniteLossError", "NotFoundError"]
__all__ += ["OtherRankError", "OutOfMemoryError", "OutputError", "RecipeError", "TrainingError"]
__all__ += ["UnreadableError", "UsageError", "WorkerError", "nearest"]

# Remarks on a run, a model or its folder; programs read, level or silence it as "manyheads".
LOG = logging.getLogger("manyheads.remarks")


class InputWarning(UserWarning):
    """A note on one input and its answer: text that was changed, or is unlike the training data."""


class ManyheadsError(Exception):
    """The work failed; the root of every error that Manyheads raises on purpose."""

    exit_code: ClassVar[int] = 1


class UsageError(ManyheadsError):
    """The call was wrong: an option, an argument, a recipe, a name."""

    exit_code: ClassVar[int] = 2


class RecipeError(UsageError):
    """One or several unknown keys or wrong values of a recipe, or values that contradict."""

    def __str__(self) -> str:
        """List the mistakes."""
        if len(self.args) == 1:
            return str(self.args[0])
        return "\n".join([f"{len(self.args)} mistakes:", *self.args])


class NotFoundError(UsageError):
    """A model, a recipe or a file that was named does not exist."""


class MissingExtraError(UsageError):
    """A feature needs a package that belongs to an extra and is not installed."""

    def __init__(self, *, package: str, extra: str) -> None:
        """Names the missing package and the command that installs its extra."""
        self.package = package
        self.extra = extra
        checkout = Path(__file__).parents[2]
        here = (checkout / "constraints.txt").is_file()  # whose torch is the one for CPUs
        super().__init__(
            f"the package {package!r} is not installed; "
            f"install it with: pip install 'manyheads[{extra}]'"
            + (f", here: pip install -c constraints.txt '.[{extra}]' in {checkout}" if here else "")
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Survives pickling, and so a worker process, in spite of keyword-only arguments."""
        return partial(MissingExtraError, package=self.package, extra=self.extra), ()


class DataError(ManyheadsError):
    """Data cannot be used as it is: encodings, line counts, empty files, unreadable images."""


class UnreadableError(DataError):
    """An image cannot be read, or not as the recipe says."""

    def __init__(self, name: str, reason: str) -> None:
        """Names the image, and says why."""
        self.name = name
        self.reason = reason
        super().__init__(name, reason)

    def __str__(self) -> str:
        """Says what to do as well."""
        return (
            f"{self.name} cannot be read as an image: {self.reason}. Save it again, or remove it."
        )


class FolderError(ManyheadsError):
    """A run or model folder is damaged, incomplete, of another version, or does not fit."""


class ChangedFolderError(FolderError):
    """The files of a model folder are others than those that were read before."""


class OutOfMemoryError(ManyheadsError):
    """A model, a batch or an input needs more memory than there is."""


class WorkerError(ManyheadsError):
    """Processes that do a part of the work ended without doing it."""


class OutputError(ManyheadsError):
    """A file or folder cannot be written: a full disk, no permission."""


class TrainingError(ManyheadsError):
    """A training run cannot go on."""


class NonFiniteLossError(TrainingError):
    """The loss became infinite or not a number."""


class InterruptedRunError(ManyheadsError):
    """The run was interrupted from outside; its state is saved and it can be resumed."""

    exit_code: ClassVar[int] = 130


class OtherRankError(ManyheadsError):
    """Another process of the same run has failed, or reports the error of this one."""

    def __init__(self, text: str, exit_code: int = 1) -> None:
        """Takes the error's message and exit code, with which this process ends in silence."""
        self.exit_code = exit_code  # type: ignore[misc]
        super().__init__(text, exit_code)

    def __str__(self) -> str:
        """Gives the message alone."""
        return str(self.args[0])


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A phrase that suggests the allowed name closest to a mistyped one.

    It goes on where a message has named what was given, and leads to the rest of it: a question
    behind a colon, or a full stop when nothing comes close, and a space.

    Args:
        name: What was given.
        allowed: What would have been accepted.

    Returns:
        The suggestion, or the end of the sentence.

    Examples:
        >>> nearest("stesp", ["steps", "warmup"])
        ": did you mean 'steps'? "
        >>> nearest("colour", ["steps", "warmup"])
        '. '
    """
    matches = get_close_matches(name, list(allowed), n=1)
    return f": did you mean {matches[0]!r}? " if matches else ". "


@contextmanager
def optional_import(package: str, *, extra: str) -> Iterator[None]:
    """Around imports of an optional dependency: raise MissingExtraError if one fails."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(package=package, extra=extra) from None
