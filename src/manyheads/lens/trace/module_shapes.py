"""The shapes in a model: every module that runs, in order, with its inputs and outputs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.nn.attention.softmax_record import CachedRecord
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import LayerId, Trace, record

Shape = tuple[int, ...]
ATTENTION = "attention"


@dataclass(frozen=True)
class ShapeLine:
    """One call of one module, or one attention.

    An attention's inputs are its queries and keys (batch, head, token, size), its output is the map
    (batch, head, query, key). The size is left out where scores are not products of q and k.
    """

    name: str  # qualified, as in the state dict; "" is the model itself
    kind: str  # the class, or "attention"
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    parameters: int
    depth: int  # the number of modules it runs inside


def walk(model: nn.Module, run: Callable[[], object]) -> list[ShapeLine]:
    """Call `run`, which uses the model, and list the model's parts in the order they are entered.

    Hooks see only parts that are called as modules. Attention over another sequence and decoding
    steps are methods, so attentions are read from a recorder as well: each has a line of its own
    between its projections. If the attention's module was not called, its parameters stand there.
    """
    walker = _Walker(model)
    with ExitStack() as hooks, record() as trace:
        for name, module in model.named_modules():
            enter = partial(walker.enter, trace, name)
            leave = partial(walker.leave, trace)
            hooks.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
            hooks.callback(module.register_forward_hook(leave).remove)
        run()
    walker.notice(trace)
    return walker.lines


def render_shapes(lines: list[ShapeLine]) -> str:
    """Align a walk as a table; indentation shows which part runs inside which."""
    table = [("part", "class", "in", "out", "parameters")]
    for line in lines:
        given = [_shape(shape) for shape in line.inputs]
        if line.kind == ATTENTION:
            given = [f"{what} {shape}" for what, shape in zip("qk", given, strict=True)]
        table.append(
            (
                "  " * line.depth + (line.name or "(model)"),
                line.kind,
                ", ".join(given) or "-",
                ", ".join(map(_shape, line.outputs)) or "-",
                f"{line.parameters:,}" if line.parameters else "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = (
        [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        + [row[-1].rjust(widths[-1])]
        for row in table
    )
    return "\n".join("  ".join(row).rstrip() for row in rows)


class _Walker:
    """Collects lines; `open` holds the indices of those whose parts are still running."""

    def __init__(self, model: nn.Module) -> None:
        self.lines: list[ShapeLine] = []
        self.open: list[int] = []
        self.seen = 0
        self.layer_ids: dict[LayerId, tuple[str, nn.Module]] = {
            module.layer_id: (name, module)
            for name, module in model.named_modules()
            if isinstance(getattr(module, "layer_id", None), LayerId)
        }

    def enter(
        self, trace: Trace, name: str, module: nn.Module, args: Any, kwargs: dict[str, Any]
    ) -> None:
        self.notice(trace)
        self.open.append(len(self.lines))
        given = tuple(_shapes((args, kwargs)))
        self.lines.append(
            ShapeLine(name, type(module).__name__, given, (), _count(module), len(self.open) - 1)
        )

    def leave(self, trace: Trace, module: nn.Module, args: Any, output: Any) -> None:
        self.notice(trace)
        index = self.open.pop()
        self.lines[index] = replace(self.lines[index], outputs=tuple(_shapes(output)))

    def notice(self, trace: Trace) -> None:
        """Add a line for every attention since the last look."""
        for entry in trace.records[self.seen :]:
            if isinstance(entry, AttentionRecord | CachedRecord):
                self.lines.append(self.attention(entry))
        self.seen = len(trace.records)

    def attention(self, entry: AttentionRecord | CachedRecord) -> ShapeLine:
        name, module = self.layer_ids.get(entry.layer_id, (str(entry.layer_id), None))
        called = any(self.lines[index].name == name for index in self.open)
        parameters = 0 if module is None or called else _count(module)
        batch, heads, queries, keys = entry.shape
        size = entry.q.shape[3:] if hasattr(entry, "q") else ()
        given = (batch, heads, queries, *size), (batch, heads, keys, *size)
        return ShapeLine(
            str(entry.layer_id), ATTENTION, given, (entry.shape,), parameters, len(self.open)
        )


def _shapes(value: object) -> Iterator[Shape]:
    """Find the shapes of tensors in arguments or results, however they are nested; not of masks."""
    if isinstance(value, Tensor):
        if value.dtype != torch.bool:
            yield tuple(value.shape)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _shapes(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _shapes(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _shapes(getattr(value, field.name))


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _shape(shape: Shape) -> str:
    return " x ".join(map(str, shape)) or "scalar"
