"""The [train] table that every task shares."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, Le, Lt

Precision = Literal["fp32", "bf16", "auto"]
ScheduleName = Literal["inverse-sqrt", "cosine", "linear", "constant"]


Count = Annotated[int, Ge(1)]
Share = Annotated[float, Ge(0), Lt(1)]
NotNegative = Annotated[float, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class EarlyStop:
    """Stop when `metric` has not improved for `patience` validations, and keep the best weights."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    metric: str
    patience: Count = 10


@dataclass(frozen=True, kw_only=True)
class Restart:
    """Begin the schedule anew after `step`, warm-up and all, at `scale` times the peak.

    A warm restart (Loshchilov & Hutter 2017, section 3): weights and optimizer go on.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    step: Count
    scale: Annotated[float, Gt(0)] = 1.0


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train. Steps are optimizer updates, whatever `accumulate` is."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    steps: Count = 1000
    accumulate: Count = 1  # batches an update: equals one batch that is as many times larger
    learning_rate: Annotated[float, Gt(0)] = 1e-3  # the peak
    schedule: ScheduleName = "cosine"
    warmup: Annotated[int, Ge(0)] = 100  # steps
    restart: Restart | None = None
    weight_decay: NotNegative = 0.0  # on matrices only
    beta1: Share = 0.9
    beta2: Share = 0.98
    muon: bool = False  # for the matrices of Transformer blocks; AdamW for all else
    # Each layer below the top learns this many times as fast as the one above it (Clark et al.
    # 2020, section 3); 1 is one rate for all.
    layer_decay: Annotated[float, Gt(0), Le(1)] = 1.0
    # Beginnings of the names of parameters that stay as they are; "!head" is all but the head.
    freeze: tuple[str, ...] = ()
    clip: NotNegative = 1.0  # largest gradient norm; 0 leaves gradients alone
    label_smoothing: Share = 0.0
    # The weights to use, and to validate: 0 the last ones, else their exponential moving average.
    ema: Share = 0.0
    average: Count = 1  # validations whose weights are averaged; 1 is the newest alone
    precision: Precision = "fp32"  # "auto": the faster one, by measurement
    tensorboard: bool = False  # the metrics as event files too
    threads: Annotated[int, Ge(0)] = 0  # 0 = all cores
    log_every: Count = 50
    validate_every: Count = 500
    save_every: Count = 500
    early_stop: EarlyStop | None = None
    store: Literal["float32", "float16"] = "float32"  # of model.safetensors

    def __post_init__(self) -> None:
        """Refuse two averages at once, and a restart when all is over."""
        if self.ema and self.average > 1:
            raise ValueError(
                f"ema is {self.ema} and average {self.average}: choose one, leave the other out"
            )
        if self.restart and self.restart.step >= self.steps:
            raise ValueError(
                f"restart.step is {self.restart.step} and steps {self.steps}: restart before the "
                "end"
            )
