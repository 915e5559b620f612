"""Mean losses and training speed between two lines of the log."""

import math
import time
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BeforeValidator

# JSON has null for what is not finite.
Sum = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]


@dataclass
class Sums:
    """Sums over the steps since the last line of the log, and over all ranks."""

    steps: int = 0
    units: int = 0
    seconds: float = 0.0  # without validation and checkpoints
    values: dict[str, Sum] = field(default_factory=dict)  # the loss, and further means


class Meter:
    """Accumulates losses and counts units between two lines of the log."""

    def __init__(self, unit: str, seconds: float, sums: Sums) -> None:
        self.unit = unit
        self.seconds = seconds  # of the whole run, validation included
        self.sums = sums
        self._last = time.monotonic()

    def _tick(self) -> float:
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        self.seconds += elapsed
        return elapsed

    def add(self, loss: float, logs: dict[str, float], units: int) -> None:
        """Add a step: its mean loss, further means, and the number of units."""
        sums = self.sums
        sums.steps += 1
        sums.units += units
        sums.seconds += self._tick()
        for name, value in ({"loss": loss} | logs).items():
            sums.values[name] = sums.values.get(name, 0.0) + value

    def skip(self) -> float:
        """Exclude the time since the last step from the speed; return the run time in seconds."""
        self._tick()
        return self.seconds

    def line(self, step: int, epoch: int, rate: float) -> dict[str, float]:
        """Return a line for the log, and begin new sums."""
        sums, self.sums = self.sums, Sums()
        means = {name: value / sums.steps for name, value in sums.values.items()}
        speed = round(sums.units / max(sums.seconds, 1e-9), 1)  # clocks have ticks
        head = {"step": step, "epoch": epoch, "seconds": round(self.seconds, 2)}
        return head | means | {"learning_rate": rate, f"{self.unit}_per_second": speed}
