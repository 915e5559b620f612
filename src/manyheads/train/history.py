"""Read the metrics log of a run, metrics.jsonl."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from manyheads.errors import FolderError
from manyheads.strict_json import loads

NON_FINITE = "non_finite"  # key in the line of the step where training stopped: loss not finite

Line = dict[str, float]


@dataclass(frozen=True)
class History:
    """The lines of a metrics log by type, in the order of steps."""

    training: list[Line] = field(default_factory=list)  # with a loss
    validations: list[Line] = field(default_factory=list)  # with metrics named val_...
    non_finite: int | None = None  # the step whose loss was infinite or NaN

    def __len__(self) -> int:
        """Count the training lines."""
        return len(self.training)

    @property
    def last_step(self) -> int:
        """The last logged step; 0 if there is none."""
        lines = (*self.training[-1:], *self.validations[-1:])
        return max([int(line["step"]) for line in lines] + [self.non_finite or 0])

    @property
    def steps(self) -> np.ndarray:
        """The step of each training line."""
        return np.array([int(line["step"]) for line in self.training])

    @property
    def losses(self) -> np.ndarray:
        """The mean loss of each training line."""
        return np.array([line["loss"] for line in self.training])

    @property
    def distance(self) -> np.ndarray:
        """The sum of the learning rates up to each line: a bound on how far Adam moved a weight.

        An update of Adam moves a weight by about the learning rate (Kingma & Ba 2015, section 2.1).
        """
        rates = np.array([line["learning_rate"] for line in self.training])
        before = np.concatenate([[0.0], rates[:-1]])
        return np.cumsum(np.diff(self.steps, prepend=0) * (rates + before) / 2)


def read_history(path: Path) -> History:
    """Read a metrics log; empty if the file is missing. An incomplete last line is left out.

    Raises:
        FolderError: a line is invalid.
    """
    history, stopped = History(), None
    for _, line in metric_lines(path):
        if NON_FINITE in line or not math.isfinite(line.get("loss", 0.0)):
            stopped = stopped or int(line["step"])
        elif "loss" in line and "learning_rate" in line:
            history.training.append(line)
        elif any(name.startswith("val_") for name in line):
            history.validations.append(line)
    return History(history.training, history.validations, stopped)


def metric_lines(path: Path) -> Iterator[tuple[str, Line]]:
    """Yield each complete line of a metrics log, and what it says; null is NaN.

    Raises:
        FolderError: a line is invalid, or the file cannot be read.
    """
    if not path.is_file():
        return
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FolderError(f"{path} cannot be read: {error}.") from None
    for number, row in enumerate(text.split("\n")[:-1], 1):
        try:
            line = {name: math.nan if v is None else v for name, v in loads(row).items()}
            if not all(isinstance(value, int | float) for value in line.values()):
                raise ValueError("not every value is a number")
            int(line["step"])
        except (ValueError, KeyError, AttributeError, OverflowError) as error:
            raise FolderError(
                f"{path}, line {number} is damaged ({type(error).__name__}: {error}). Remove that "
                "line."
            ) from None
        yield f"{row}\n", line
