"""Which source token an output token comes from: the attention that says so is found by measuring.

Heads differ in what they do, and which of them follows the alignment of words differs from model
to model. So every head, the mean of every layer's heads and the mean of all are asked for outputs
whose origin is known, and the one that errs least is chosen. Each is asked twice: in the step that
writes a token, and in the step that reads it, which often follows the alignment more closely (Chen
et al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation").
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.alignment import ScoreRecord
from manyheads.nn.attention import AttentionRecord
from manyheads.nn.trace import Site, Trace

Weights = Float[Tensor, "batch output source"]
UNMEASURED = (
    "which attention follows the alignment of words was not measured for this model, and the usual "
    "guess may be far off: measure it with `manyheads evaluate --alignment`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One way to read an alignment off the decoder's attention over the source."""

    layer: int | None = None  # from 0; None: the mean of all layers
    head: int | None = None  # from 0; None: the mean of the heads
    late: bool = False  # in the step that reads a token, not in the one that writes it

    def __str__(self) -> str:
        """Name it as legends do, counting from 1."""
        layer = "all decoder layers" if self.layer is None else f"decoder layer {self.layer + 1}"
        head = "mean of the heads" if self.head is None else f"head {self.head + 1}"
        return f"{layer}, {head}, in the step that {'reads' if self.late else 'writes'} a token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The reader to use, and what it is chosen for."""

    reader: Reader
    why: str
    error: float | None = None  # the share of references read wrongly; None: not measured


@dataclass(frozen=True)
class AlignmentView:
    """Which source token each output token comes from, as the chosen attention has it."""

    legend: str
    # site; layer and head from 1, null for the mean; step: "written" or "read"
    chosen: dict[str, Any]
    why: str
    links: list[list[float]]  # [output token, source token, weight], counted from 0
    error: float | None  # the share of words with a known origin that it reads wrongly


class Reference(NamedTuple):
    """Output tokens that belong together, such as those of a number, and their source tokens."""

    outputs: AbstractSet[int]
    sources: AbstractSet[int]


class Errors(NamedTuple):
    """How many references were read wrongly, of how many."""

    wrong: int
    of: int

    @property
    def percent(self) -> float:
        """The share in percent."""
        return 100 * self.wrong / self.of


def layers(trace: Trace) -> dict[int, Float[Tensor, "batch head output source"]]:
    """Compute the decoder's maps over the source, layer by layer, of one pass or one search.

    Raises:
        UsageError: nothing that attends to a source was recorded.
    """
    found: dict[int, list[Tensor]] = {}
    for entry in trace.complete():
        if isinstance(entry, AttentionRecord | ScoreRecord) and entry.site.kind == "cross":
            found.setdefault(entry.site.layer, []).append(entry.weights)
    if not found:
        raise UsageError("This model has no attention over the source: it offers no alignment.")
    return {layer: torch.cat(found[layer], dim=2) for layer in sorted(found)}


def readers(maps: Mapping[int, Tensor]) -> list[Reader]:
    """List every way to read an alignment: all layers, each layer, each head; written, read.

    Of equally good ones the first is chosen, so those that use more stand in front, and those of
    the last layer but one: there alignments are usually found (Garg et al. 2019, "Jointly Learning
    to Align and Translate with Transformer Models").
    """
    usual = fallback(maps)
    every = [usual, *(Reader(layer=layer) for layer in maps)]
    if len(maps) > 1:
        every.append(Reader())
    for layer, weights in maps.items():
        if weights.shape[1] > 1:
            every += [Reader(layer=layer, head=head) for head in range(weights.shape[1])]
    late = [Reader(layer=each.layer, head=each.head, late=True) for each in every]
    return list(dict.fromkeys(every + late))


def fallback(maps: Mapping[int, Tensor]) -> Reader:
    """Choose without measuring: the mean of the last layer but one, where there are several."""
    return Reader(layer=sorted(maps)[-2:][0])


def read(maps: Mapping[int, Tensor], reader: Reader) -> Weights:
    """Take the weights of one reader: a row for each output token.

    The row in which the last token is read is beyond the end: it keeps the one that writes it.

    Raises:
        UsageError: the model has no such layer or head.
    """
    if reader.layer is None:
        weights = torch.stack([each.mean(dim=1) for each in maps.values()]).mean(dim=0)
    elif reader.layer not in maps or (reader.head or 0) >= maps[reader.layer].shape[1]:
        counts = ", ".join(f"{layer + 1} ({each.shape[1]} heads)" for layer, each in maps.items())
        raise UsageError(
            f"Alignments should be read from {reader}, but the decoder's layers are {counts}: "
            "measure anew with `manyheads evaluate --alignment`."
        )
    elif reader.head is None:
        weights = maps[reader.layer].mean(dim=1)
    else:
        weights = maps[reader.layer][:, reader.head]
    return torch.cat((weights[:, 1:], weights[:, -1:]), dim=1) if reader.late else weights


def count(most: Sequence[int], references: Iterable[Reference]) -> Errors:
    """Count references of which any token was read most from a wrong source token.

    Args:
        most: for each output token the source token that it was read most from.
        references: what they should be.
    """
    right = [all(most[row] in each.sources for row in each.outputs) for each in references]
    return Errors(right.count(False), len(right))


def choose(errors: Mapping[Reader, Errors]) -> Reader:
    """Choose the reader that errs least."""
    return min(errors, key=lambda reader: errors[reader].wrong)


def alignment_view(
    trace: Trace, chosen: Chosen | None, outputs: int, sources: int
) -> AlignmentView:
    """Link the tokens of one recorded translation.

    Args:
        trace: of one pass or one output of a search.
        chosen: which attention to read; None: none was measured.
        outputs: the output's tokens, the end not counted.
        sources: the source's, likewise.

    Raises:
        UsageError: the model has no attention over the source, or not the chosen one.
    """
    maps = layers(trace)
    chosen = chosen or Chosen(reader=fallback(maps), why=UNMEASURED)
    reader = chosen.reader
    weights = read(maps, reader)[0]
    site = Site("decoder", reader.layer or 0, "cross")
    found = links(weights, outputs, sources)
    return AlignmentView(
        legend=f"from each output token to the source token that it comes from: {reader}; the end "
        "of the source is not counted",
        chosen={
            "site": "decoder cross" if reader.layer is None else str(site),
            "layer": None if reader.layer is None else reader.layer + 1,
            "head": None if reader.head is None else reader.head + 1,
            "step": "read" if reader.late else "written",
        },
        why=chosen.why,
        links=[[row, column, round(share, 4)] for row, column, share in found],
        error=chosen.error,
    )


def links(
    weights: Float[Tensor, "output source"], outputs: int, sources: int
) -> list[tuple[int, int, float]]:
    """Link each output token with the source token it is read most from: (row, column, weight).

    Args:
        weights: of one example.
        outputs: the tokens to link, without the end: it comes from nowhere.
        sources: those that they may come from, without the end: much attention rests there when
            there is nothing to read.
    """
    if not sources:
        return []
    share, place = weights[:outputs, :sources].max(dim=1)
    return list(zip(range(outputs), place.tolist(), share.tolist(), strict=False))
