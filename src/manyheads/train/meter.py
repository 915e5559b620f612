"""Mean losses and training speed between two lines of the log."""

import time


class Meter:
    """Accumulates losses and counts units between two lines of the log."""

    def __init__(self, unit: str, seconds: float) -> None:
        self.unit = unit
        self.seconds = seconds  # of the whole run, validation included
        self._last = time.monotonic()
        self._reset()

    def _reset(self) -> None:
        self._steps, self._units, self._busy = 0, 0, 0.0
        self._sums: dict[str, float] = {}

    def _tick(self) -> float:
        now = time.monotonic()
        elapsed, self._last = now - self._last, now
        self.seconds += elapsed
        return elapsed

    def add(self, loss: float, logs: dict[str, float], units: int) -> None:
        """Add a step: its mean loss, further means, and the number of units."""
        self._steps += 1
        self._units += units
        self._busy += self._tick()
        for name, value in ({"loss": loss} | logs).items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def skip(self) -> float:
        """Exclude the time since the last step from the speed; return the run time in seconds."""
        self._tick()
        return self.seconds

    def line(self, step: int, epoch: int, rate: float) -> dict[str, float]:
        """Return a line for the log, and reset the sums."""
        means = {name: value / self._steps for name, value in self._sums.items()}
        speed = round(self._units / max(self._busy, 1e-9), 1)  # clocks have ticks
        head = {"step": step, "epoch": epoch, "seconds": round(self.seconds, 2)}
        self._reset()
        return head | means | {"learning_rate": rate, f"{self.unit}_per_second": speed}
