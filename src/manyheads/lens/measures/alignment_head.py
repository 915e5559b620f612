"""Word alignment from cross-attention, with the head of the lowest alignment error.

Which head follows the word alignment differs from model to model. So every head, the mean of each
layer's heads and the mean of all are measured on known word links, and the one with the lowest
error is chosen. Each is measured twice: in the step that generates a token, and in the step that
reads it as input, which often aligns better (Chen et al. 2020, "Accurate Word Alignment Induction
from Neural Machine Translation").
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import LayerId, Trace

Weights = Float[Tensor, "batch output source"]
UNMEASURED = (
    "the best attention head for word alignment was not measured for this model, and the default "
    "may be wrong: evaluate it with `alignment=True`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentHead:
    """A head, or mean of heads, of the cross-attention that word alignment is taken from."""

    layer: int | None = None  # from 0; None: the mean of all layers
    head: int | None = None  # from 0; None: the mean of the heads
    late: bool = False  # use the step that reads a token, not the one that generates it

    def __str__(self) -> str:
        """Return the name for legends, counted from 1."""
        layer = "all decoder layers" if self.layer is None else f"decoder layer {self.layer + 1}"
        head = "mean of the heads" if self.head is None else f"head {self.head + 1}"
        return f"{layer}, {head}, while {'reading' if self.late else 'predicting'} the token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The chosen alignment head, and the reason."""

    reader: AlignmentHead
    why: str
    error: float | None = None  # the share of wrong references; None: not measured


@dataclass(frozen=True)
class AlignmentView:
    """The aligned source token of each output token, by the chosen alignment head."""

    legend: str
    # layer_id; layer and head from 1, null for the mean; step: "written" or "read"
    chosen: dict[str, Any]
    why: str
    links: list[list[float]]  # [output token, source token, weight], counted from 0
    error: float | None  # the share of words with a known link that are aligned wrongly


class Reference(NamedTuple):
    """The output tokens of one word or number, and its source tokens."""

    outputs: AbstractSet[int]
    sources: AbstractSet[int]


class Errors(NamedTuple):
    """The number of wrong references, and of all."""

    wrong: int
    of: int

    @property
    def percent(self) -> float:
        """The error in percent."""
        return 100 * self.wrong / self.of


def layers(trace: Trace) -> dict[int, Float[Tensor, "batch head output source"]]:
    """Compute the cross-attention maps, layer by layer, of one pass or one search.

    Raises:
        UsageError: no cross-attention was recorded.
    """
    found: dict[int, list[Tensor]] = {}
    for entry in trace.complete():
        if isinstance(entry, AttentionRecord) and entry.layer_id.kind == "cross":
            found.setdefault(entry.layer_id.layer, []).append(entry.weights())
    if not found:
        raise UsageError("This model has no attention over the source: it offers no alignment.")
    return {layer: torch.cat(found[layer], dim=2) for layer in sorted(found)}


def readers(maps: Mapping[int, Tensor]) -> list[AlignmentHead]:
    """List all candidates: the mean of all layers, each layer, each head; both steps.

    The first of equally good ones is chosen, so means come first, and the second-to-last layer:
    there alignments are usually found (Garg et al. 2019, "Jointly Learning to Align and Translate
    with Transformer Models").
    """
    every = [fallback(maps), *(AlignmentHead(layer=layer) for layer in maps)]
    if len(maps) > 1:
        every.append(AlignmentHead())
    for layer, weights in maps.items():
        if weights.shape[1] > 1:
            every += [AlignmentHead(layer=layer, head=head) for head in range(weights.shape[1])]
    late = [AlignmentHead(layer=each.layer, head=each.head, late=True) for each in every]
    return list(dict.fromkeys(every + late))


def fallback(maps: Mapping[int, Tensor]) -> AlignmentHead:
    """Return the default without measurement: the mean of the second-to-last layer."""
    return AlignmentHead(layer=sorted(maps)[-2:][0])


def read(maps: Mapping[int, Tensor], reader: AlignmentHead) -> Weights:
    """Return the weights of one alignment head: a row for each output token.

    The last token is never read as input: it keeps the row of the step that generates it.

    Raises:
        UsageError: the model has no such layer or head.
    """
    if reader.layer is None:
        weights = torch.stack([each.mean(dim=1) for each in maps.values()]).mean(dim=0)
    elif reader.layer not in maps or (reader.head or 0) >= maps[reader.layer].shape[1]:
        counts = ", ".join(f"{layer + 1} ({each.shape[1]} heads)" for layer, each in maps.items())
        raise UsageError(
            f"The alignment head is {reader}, but the decoder's layers are {counts}: evaluate it "
            "again with `alignment=True`."
        )
    elif reader.head is None:
        weights = maps[reader.layer].mean(dim=1)
    else:
        weights = maps[reader.layer][:, reader.head]
    return torch.cat((weights[:, 1:], weights[:, -1:]), dim=1) if reader.late else weights


def count(most: Sequence[int], references: Iterable[Reference]) -> Errors:
    """Count the references with any token aligned to a wrong source token.

    `most` is, for each output token, the source token with the largest weight.
    """
    right = [all(most[row] in each.sources for row in each.outputs) for each in references]
    return Errors(right.count(False), len(right))


def choose(errors: Mapping[AlignmentHead, Errors]) -> AlignmentHead:
    """Return the alignment head with the lowest error."""
    return min(errors, key=lambda reader: errors[reader].wrong)


def alignment_view(
    trace: Trace, chosen: Chosen | None, outputs: int, sources: int
) -> AlignmentView:
    """Align the tokens of one recorded translation; the numbers of tokens are without the end.

    Raises:
        UsageError: the model has no attention over the source, or not the chosen one.
    """
    maps = layers(trace)
    chosen = chosen or Chosen(reader=fallback(maps), why=UNMEASURED)
    reader = chosen.reader
    layer_id = LayerId("decoder", reader.layer or 0, "cross")
    found = links(read(maps, reader)[0], outputs, sources)
    return AlignmentView(
        legend=f"from each output token to its aligned source token: {reader}; the end token of "
        "the source is left out",
        chosen={
            "site": "decoder cross" if reader.layer is None else str(layer_id),
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
    """Link each output token to the source token with the largest weight: (row, column, weight).

    The numbers of tokens are without the end token: it often gets attention without being aligned.
    """
    if not sources:
        return []
    share, column = weights[:outputs, :sources].max(dim=1)
    return list(zip(range(outputs), column.tolist(), share.tolist(), strict=False))
