"""Explain every token of an output by the tokens of the source: relevance, integrated gradients.

Why these scores, baselines and limits: docs/decisions/explanations.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.cancellation import raise_if_cancelled
from manyheads.lens.attribution.gradients import weighed
from manyheads.lens.attribution.integrated_gradients import Integrated, until_complete
from manyheads.lens.attribution.relevance import relevance, relevance_of_source
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.embeddings import changed, embeddings
from manyheads.lens.trace.gates import gate_maps
from manyheads.lens.view.text_view import Span, TextOverlay, TextView, text_overlay
from manyheads.looking.budget import integrate, limit
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import Trace, record
from manyheads.project.cost import OperationCount

ENTRY = 400  # operations that a weight of a map, its gradient and their product are reckoned as
ROWS = 64  # of a text's overlay: each costs a pass backward


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One text that was read, and the model's output to explain.

    `run` takes ids of source tokens (row, token), and returns logits (row, output, class).
    """

    model: nn.Module
    source: Tensor  # ids, (1, token)
    output: Sequence[int]  # which class of each row of logits is explained
    run: Callable[[Tensor], Tensor]
    source_tokens: Sequence[str]
    output_tokens: Sequence[str]
    source_spans: Sequence[Span | None] | None = None
    output_spans: Sequence[Span | None] | None = None

    def scores(self, logits: Tensor, size: int) -> Tensor:
        """Return the log-odds of each output token, summed over groups: (row, group)."""
        logits = logits.float()
        wanted = torch.tensor(self.output, device=logits.device).expand(len(logits), -1)
        odds = log_odds(logits, wanted)
        rest = -odds.shape[1] % size
        return F.pad(odds, (0, rest)).unflatten(1, (-1, size)).sum(dim=2)


def explain_reading(
    reading: Reading, *, integrated: bool | None = False
) -> tuple[list[TextOverlay], list[str]]:
    """Explain every token of an output by those of the source.

    Gradients are integrated if `integrated` is True, or None and the cost is low; and always where
    the model has neither attention nor gates. Returns matrices of output x source tokens, and notes
    on how to read them.
    """
    # cuDNN refuses gradients through recurrent layers in evaluation mode.
    no_cudnn = partial(torch.backends.cudnn.flags, enabled=False)
    device = reading.source.device
    with no_cudnn(), torch.enable_grad(), record(gradients=True) as trace:
        with OperationCount() as count:
            logits = reading.run(reading.source)
        # A row of relevance asks for all maps and their gradients once more.
        entries = sum(each.heads * each.shape[0] * each.shape[1] for each in attentions(trace))
        row = 2 * count.total + ENTRY * entries
        affordable = int(limit(device) / max(row, 1))
        size = -(-len(reading.output) // max(min(ROWS, affordable), 1))
        scores = reading.scores(logits, size)[0]
    overlay = partial(
        text_overlay,
        rows=reading.output_tokens,
        columns=reading.source_tokens,
        size=size,
        row_spans=reading.output_spans,
        column_spans=reading.source_spans,
    )
    overlays: list[TextOverlay] = []
    notes: list[str] = []
    if size > 1:
        notes.append(f"Output tokens are explained {size} in a row at a time.")
    kept = [each for each in trace if isinstance(each, AttentionRecord)]
    crossed = any(each.layer_id.kind.startswith("cross") for each in kept)
    if crossed or (kept and all(each.layer_id.stack == "encoder" for each in kept)):
        weights = torch.stack(
            [_relevance_of_text(trace, each, n * size, size) for n, each in enumerate(scores)]
        )
        if len(trace) > len(kept):
            notes.append(
                "Relevance follows attention alone: what recurrent layers carry from token to "
                "token is left out."
            )
        sums = weights.sum(dim=1, keepdim=True)
        legend = (
            "relevance of each source token to the log-odds of each output token (Chefer et al. "
            "2021); rows sum to 1" + ("" if bool((sums > 0).all()) else ", or to 0: nothing speaks")
        )
        shown = torch.where(sums > 0, weights / sums.clamp_min(1e-30), 0.0)
        overlays.append(overlay("relevance", legend, shown, signed=False))
    else:
        notes.append("Relevance is not defined here: no attention leads from output to source.")
    cost = float(1 + 2 * len(scores)) * count.total  # of a step
    empty = not overlays and not kept and not gate_maps(trace)
    with no_cudnn():
        run = partial(_integrated, reading, size)
        parts, told = integrate(integrated, cost, device, run, alone=empty)
    if parts is not None:
        legend = (
            "integrated gradients: what each source token adds to the log-odds of each output "
            f"token, in {parts.steps} steps from zero embeddings of the whole source; orange "
            "lowers the score"
        )
        shares = parts.parts.sum(dim=-1).cpu()  # over the numbers of an embedding
        overlays.append(overlay("integrated gradients", legend, shares, signed=True))
    return overlays, notes + told


def explained(view: TextView, reading: Reading, *, integrated: bool | None) -> TextView:
    """Add overlays that explain the output tokens to a view."""
    overlays, notes = explain_reading(reading, integrated=integrated)
    return replace(view, overlays=overlays, notes=[*view.notes, *notes])


def log_odds(logits: Tensor, wanted: Tensor) -> Tensor:
    """Return the log-odds log p / (1 - p) of classes: logits (..., class), wanted (...) indices.

    Unlike a logit it does not change when all logits do, and unlike a log-probability it does not
    stop to grow where p is close to 1.
    """
    own = logits.gather(-1, wanted[..., None])
    others = logits.scatter(-1, wanted[..., None], float("-inf"))
    return own[..., 0] - others.logsumexp(dim=-1)


def _relevance_of_text(trace: Trace, score: Tensor, first: int, size: int) -> Tensor:
    """Explain a group of output tokens by the source's."""
    raise_if_cancelled()
    weights = weighed(trace, score)
    start = torch.zeros(weights[-1].attention.shape[0])
    start[first : first + size] = 1.0
    crossed = any(each.attention.layer_id.kind.startswith("cross") for each in weights)
    return relevance_of_source(weights, start) if crossed else relevance(weights, start)


def _integrated(reading: Reading, size: int, most: int) -> Integrated:
    with torch.no_grad():
        vectors = embeddings(reading.model, reading.source, lambda: reading.run(reading.source))[0]

    def scores(points: Tensor) -> Tensor:
        ids = reading.source.expand(len(points), -1)
        with changed(reading.model, ids, lambda _: points):
            return reading.scores(reading.run(ids), size)

    return until_complete(scores, vectors, torch.zeros_like(vectors), most=most)
