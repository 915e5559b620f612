"""The [train] table that every task shares."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from annotated_types import Ge, Gt, Le

from manyheads.bounded_numbers import Count, NotNegative, Share

Precision = Literal["fp32", "bf16", "auto"]
Parallel = Literal["ddp", "fsdp"]
ScheduleName = Literal["inverse-sqrt", "cosine", "linear", "constant"]


@dataclass(frozen=True, kw_only=True)
class EarlyStop:
    """Stop when `metric` has not improved for `patience` validations, and keep the best weights."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    metric: str
    patience: Count = 10


@dataclass(frozen=True, kw_only=True)
class Restart:
    """Restart the schedule after `step`, with warm-up, at `scale` times the peak.

    A warm restart (Loshchilov & Hutter 2017, section 3): weights and optimizer state are kept.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    step: Count
    scale: Annotated[float, Gt(0)] = 1.0


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The [train] table of all tasks. A step is one optimizer update, whatever `accumulate` is."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    steps: Count = 1000
    accumulate: Count = 1  # batches per update: equivalent to one larger batch
    learning_rate: Annotated[float, Gt(0)] = 1e-3  # the peak
    schedule: ScheduleName = "cosine"
    warmup: Annotated[int, Ge(0)] = 100  # steps
    restart: Restart | None = None
    weight_decay: NotNegative = 0.0  # on matrices only
    beta1: Share = 0.9
    beta2: Share = 0.98
    muon: bool = False  # for matrices of Transformer blocks and airbench's filters; else AdamW
    # The learning rate of each layer, relative to the layer above it (Clark et al. 2020,
    # section 3); 1 is the same rate for all.
    layer_decay: Annotated[float, Gt(0), Le(1)] = 1.0
    # Name prefixes of parameters to freeze; "!head" is all but the head.
    freeze: tuple[str, ...] = ()
    clip: NotNegative = 1.0  # maximum gradient norm; 0 is off
    label_smoothing: Share = 0.0
    # Decay of the exponential moving average of the weights to save and validate; 0: the last ones.
    ema: Share = 0.0
    average: Count = 1  # number of validations whose weights are averaged; 1: only the newest
    # Share of the weights before training in those to save and validate: a model that is continued
    # forgets less (Wortsman et al. 2022).
    toward_start: Share = 0.0
    precision: Precision = "fp32"  # "auto": the faster one; fp32 where bf16 would be imitated
    # How several processes (torchrun) share the model: "ddp" has it whole in each, "fsdp" a part.
    parallel: Parallel = "ddp"
    checkpoint_activations: bool = False  # less memory: compute blocks again in the backward pass
    compile: bool = False  # torch.compile each block for training
    tensorboard: bool = False  # also write the metrics as TensorBoard event files
    threads: Annotated[int, Ge(0)] = 0  # 0 = all cores
    workers: Annotated[int, Ge(0)] = 0  # processes that make batches ahead; 0: none, as on a CPU
    log_every: Count = 50
    validate_every: Count = 500
    # Also before the first step: what a model that is continued is worth. Training says at its end
    # what became of each score, and weights that never got better are kept.
    validate_first: bool = False
    save_every: Count = 500
    early_stop: EarlyStop | None = None
    # Of model.safetensors. "int8": matrices with a scale for each row, all else float16.
    save_dtype: Literal["float32", "float16", "int8"] = "float32"

    @property
    def memory_format(self) -> torch.memory_format:
        """The memory format of images and convolution weights."""
        return torch.contiguous_format

    def __post_init__(self) -> None:
        if (self.ema > 0) + (self.average > 1) + (self.toward_start > 0) > 1:
            raise ValueError(
                f"ema is {self.ema}, average {self.average} and toward_start {self.toward_start}: "
                "choose one, leave the others out"
            )
        if self.restart and self.restart.step >= self.steps:
            raise ValueError(
                f"restart.step is {self.restart.step} and steps {self.steps}: restart before the "
                "end, or not at all"
            )
