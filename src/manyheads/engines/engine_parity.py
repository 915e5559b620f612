"""The parity gate: what an engine answers is compared with torch before an export is kept."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from manyheads.errors import ManyheadsError

FLOAT32 = 1e-4  # largest difference, as a share of the largest logit
METRIC = 0.5  # points of a metric that a quantized model may lose, unless the task says otherwise
EXACT = ("float32",)  # types of numbers that must give torch's own values


@dataclass(frozen=True, kw_only=True)
class Parity:
    """The report: what torch and the engine answered to the same inputs."""

    data: str  # what was compared on
    inputs: int
    compared: str  # what `difference` is of: "logits"
    difference: float  # the largest, as a share of the largest absolute logit of torch
    changed: float  # share of the inputs whose answer differs, 0 to 1
    metric: str | None = None  # None: nothing tells right from wrong
    before: float | None = None  # of torch
    after: float | None = None  # of the engine
    allowed: float = METRIC  # points of the metric that may be lost
    lower_is_better: bool = False
    seconds: dict[str, float] = field(default_factory=dict)  # for the same inputs, by engine

    @property
    def lost(self) -> float | None:
        """Points of the metric that the engine loses; below 0, it gains."""
        if self.before is None or self.after is None:
            return None
        worse = self.before - self.after
        return -worse if self.lower_is_better else worse

    def failures(self, quantization: str) -> Iterator[str]:
        """Say why the engine fails the parity check."""
        if not math.isfinite(self.difference):
            yield f"the engine's {self.compared} are not all finite"
        elif quantization in EXACT and self.difference > FLOAT32:
            yield (
                f"{self.compared} differ by up to {self.difference:.1e} of the largest logit; in "
                f"{quantization} at most {FLOAT32:.0e} is allowed"
            )
        if self.lost is not None and not self.lost <= self.allowed:
            yield (
                f"{self.metric} is {self.after:.2f}, and {self.before:.2f} with torch; at most "
                f"{self.allowed} may be lost"
            )
        if self.lost is None and quantization not in EXACT:
            yield (
                f"{quantization} is judged by a metric, and there are no right answers: give "
                "`data` that have them"
            )

    def to_json(self) -> dict[str, Any]:
        """Give it as plain data."""
        finite = self.difference if math.isfinite(self.difference) else None
        return asdict(self) | {"difference": finite, "lost": self.lost}


class ParityError(ManyheadsError):
    """What was written does not answer as torch does; nothing was kept."""

    def __init__(self, message: str, parity: Parity) -> None:
        super().__init__(message)
        self.parity = parity
