"""What a run wrote about itself: metrics.jsonl, read back."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from manyheads.errors import FolderError

NON_FINITE = "non_finite"  # in the line of the step at which training stopped on an impossible loss

Line = dict[str, float]


@dataclass(frozen=True)
class History:
    """The lines of a metrics log by what they are of, each in the order of steps."""

    training: list[Line] = field(default_factory=list)  # with a loss
    validations: list[Line] = field(default_factory=list)  # with what was measured, val_...
    non_finite: int | None = None  # the step whose loss was infinite or not a number

    def __len__(self) -> int:
        """Count the lines about training."""
        return len(self.training)

    @property
    def last_step(self) -> int:
        """The last step that is known of; 0 if none is."""
        lines = (*self.training[-1:], *self.validations[-1:])
        return max([int(line["step"]) for line in lines] + [self.non_finite or 0])

    @property
    def steps(self) -> np.ndarray:
        """The step of each line about training."""
        return np.array([int(line["step"]) for line in self.training])

    @property
    def losses(self) -> np.ndarray:
        """The mean loss of each line about training."""
        return np.array([line["loss"] for line in self.training])

    @property
    def distance(self) -> np.ndarray:
        """The sum of the learning rates up to each line: how far an Adam could have gone.

        An update of Adam moves a weight by about the learning rate (Kingma & Ba 2015, section 2.1).
        """
        rates = np.array([line["learning_rate"] for line in self.training])
        before = np.concatenate([[0.0], rates[:-1]])
        return np.cumsum(np.diff(self.steps, prepend=0) * (rates + before) / 2)


def read_history(path: Path) -> History:
    """Read a metrics log; nothing if there is none. A last line that is cut off is left out.

    Raises:
        FolderError: a line is not what training writes.
    """
    if not path.exists():
        return History()
    text = path.read_text(encoding="utf-8", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    history, stopped = History(), None
    for number, row in enumerate(whole.splitlines(), 1):
        try:
            line = json.loads(row)
            step = int(line["step"])
            loss = float(line.get("loss", 0.0))
            float(line.get("learning_rate", 0.0))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FolderError(
                f"{path}, line {number} is damaged ({type(error).__name__}: {error}). Remove that "
                "line."
            ) from None
        if NON_FINITE in line or not math.isfinite(loss):
            stopped = stopped or step
        elif "loss" in line and "learning_rate" in line:
            history.training.append(line)
        elif any(name.startswith("val_") for name in line):
            history.validations.append(line)
    return History(history.training, history.validations, stopped)
