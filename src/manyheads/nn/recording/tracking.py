"""Positions that a running model reports to the open recorder: the token grid and the decode step.

Modules that make tokens from pixels, or fewer tokens from many, report it here, so every attention
is recorded with the positions of its queries and keys. Nothing of this takes part in the
computation, and without an open recorder nothing happens.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from weakref import ref

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.token_grid import Axis, TokenGrid, conv_output_grid
from manyheads.nn.recording.trace import active
from manyheads.nn.shapes import Grid, Images, Tokens, check_axes


def start_image(images: Images) -> None:
    """Check the images of an image model, and set the token grid to their pixels.

    Raises:
        UsageError: the batch or the channel axis is missing, or the values are whole numbers.
    """
    check_axes(images, "batch channel height width")
    if not images.is_floating_point():
        raise UsageError(
            f"The images hold {images.dtype}, but a model reads normalised values: call "
            "`preprocessing.normalise(pixels)`, or give files to what `manyheads.load` returns."
        )
    trace = active()
    if trace is not None:
        height, width = images.shape[2:]
        trace.current_grid = TokenGrid((height, width), Axis(height), Axis(width))


def start_text() -> None:
    """Clear the token grid before a text model runs."""
    trace = active()
    if trace is not None:
        trace.current_grid = None


def current_grid() -> TokenGrid | None:
    """Return the grid of the current tokens; None without a recorder or without an image."""
    trace = active()
    return None if trace is None else trace.current_grid


def track_conv(size: int, stride: int, *, grid: Grid) -> None:
    """Apply a convolution or a pool with this output grid to the token grid."""
    trace = active()
    if trace is not None and trace.current_grid is not None:
        trace.current_grid = trace.current_grid.through(size, stride, grid=grid)


def track_modules(parts: Iterable[nn.Module]) -> None:
    """Apply modules that run in sequence to the token grid; those without a kernel keep it."""
    trace = active()
    if trace is None or trace.current_grid is None:
        return
    for part in parts:
        if hasattr(part, "kernel_size"):
            trace.current_grid = conv_output_grid(trace.current_grid, part)


def prepend_tokens(names: tuple[str, ...]) -> None:
    """Add tokens with these names, which have no position, in front of the grid."""
    trace = active()
    if trace is not None and trace.current_grid is not None:
        trace.current_grid = replace(trace.current_grid, extra=names + trace.current_grid.extra)


def track_memory(memory: Float[Tensor, "batch key dim"]) -> Float[Tensor, "batch key dim"]:
    """Remember the current grid as that of an encoder's output, and return the output.

    A decoder of text clears the current grid before it attends to the memory of an image.
    """
    trace = active()
    if trace is not None:
        trace.memory = (ref(memory), trace.current_grid)
    return memory


def grid_of(tokens: Tokens) -> TokenGrid | None:
    """Return the grid of an encoder's tracked output; of other tensors the current grid."""
    trace = active()
    if trace is None:
        return None
    if trace.memory is not None and trace.memory[0]() is tokens:
        return trace.memory[1]
    return trace.current_grid


@contextmanager
def step_context(step: DecodeStep) -> Iterator[None]:
    """Assign everything that is recorded in the `with` block to a decode step."""
    trace = active()
    if trace is None:
        yield
        return
    outer, trace.decode_step = trace.decode_step, step
    try:
        yield
    finally:
        trace.decode_step = outer
