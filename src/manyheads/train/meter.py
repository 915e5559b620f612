"""What a run did between two lines of its log, and how fast."""

import time


class Meter:
    """Adds up what happens between two lines of the log."""

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
        """Note a step: its mean loss, further means, and how many units it processed."""
        self._steps += 1
        self._units += units
        self._busy += self._tick()
        for name, value in ({"loss": loss} | logs).items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def skip(self) -> float:
        """Let the time since the last step not count as training speed; say how long the run is."""
        self._tick()
        return self.seconds

    def line(self, step: int, epoch: int, rate: float) -> dict[str, float]:
        """Return a line for the log, and start anew."""
        means = {name: value / self._steps for name, value in self._sums.items()}
        speed = round(self._units / self._busy, 1)
        head = {"step": step, "epoch": epoch, "seconds": round(self.seconds, 2)}
        self._reset()
        return head | means | {"learning_rate": rate, f"{self.unit}_per_second": speed}
