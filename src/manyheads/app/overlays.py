"""Explain an answer by gradients: choose the score, run the model, and say in words what is shown.

Why these scores, baselines and limits: docs/decisions/explanations.md.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.app.cost import OperationCount
from manyheads.errors import UsageError, nearest
from manyheads.lens.embeddings import changed, embeddings
from manyheads.lens.grad_cam import grad_cam, last_features
from manyheads.lens.gradients import weighed
from manyheads.lens.integrated_gradients import MOST, STEPS, Integrated, until_complete
from manyheads.lens.picture import CELLS, POOL, Attribution
from manyheads.lens.reading import attentions, is_attention
from manyheads.lens.relevance import (
    read_from,
    relevance,
    relevance_for_pool,
    relevance_of_source,
)
from manyheads.lens.view import Span, TextOverlay, text_overlay
from manyheads.nn.features import MAP, FeatureRecord
from manyheads.nn.places import Axis, Places
from manyheads.nn.trace import Site, Trace, record

Baseline = Literal["black", "mean", "blur"]
BASELINES = {  # by name, in words
    "black": "a black picture",
    "mean": "its own mean colour",
    "blur": "its own blur",
}

# Floating-point operations that looking may cost unasked: some ten seconds of two CPU cores.
WORTH = {"cpu": 1e12, "other": 1e14}
ENTRY = 400  # operations that a weight of a map, its gradient and their product are reckoned as
ROWS = 64  # of a text's overlay: each costs a pass backward
BLURRED = 0.1  # of the shorter side: standard deviation of the Gaussian that takes all detail away


def explain_picture(
    model: nn.Module,
    images: Tensor,
    *,
    target: int,
    label: str,
    baseline: str = "black",
    black: Tensor,
    integrated: bool | None = None,
) -> tuple[list[Attribution], list[str]]:
    """Explain one logit of a classifier for one picture.

    Args:
        model: images in, logits out.
        images: one of them, normalised.
        target: the class whose logit is explained.
        label: its name.
        baseline: of integrated gradients.
        black: a black picture, normalised.
        integrated: whether to integrate gradients; None: where it costs little.

    Returns:
        What is to be laid over the picture, and what one has to know about it.

    Raises:
        UsageError: there is no such baseline.
    """
    if baseline not in BASELINES:
        raise UsageError(
            f"There is no baseline {baseline!r}{nearest(baseline, BASELINES)}"
            f"Allowed: {', '.join(BASELINES)}."
        )
    given = images.detach().clone().requires_grad_()
    with torch.enable_grad(), record(gradients=True) as trace, OperationCount() as count:
        score = model(given)[0, target].float()
    what = f"the logit of {label}"
    found, notes = _relevance(trace, score, label, what)
    found += [_where(each, score, label, what) for each in last_features(trace)]
    if not found:
        notes.append("Relevance and Grad-CAM are not defined here: the model has no tokens or map.")
    cost = 3.0 * count.total  # of a step
    if integrated or (integrated is None and (not found or _worth(cost, images.device))):
        start, most = _baseline(baseline, images, black), _most(cost, images.device)
        parts = until_complete(
            lambda x: model(x)[:, target, None].float(), images[0], start, most=most
        )
        found.append(_of_pixels(parts, baseline, label, what))
        notes += _incomplete(parts)
    elif integrated is None:
        notes.append(_left_out(cost))
    return found, notes


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One text that was read, and what a model says of it: what there is to explain.

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

    def scores(self, ids: Tensor, size: int) -> Tensor:
        """Return the log-odds of each output token, summed over groups: (row, group)."""
        return self.grouped(self.run(ids), size)

    def grouped(self, logits: Tensor, size: int) -> Tensor:
        """The same from the logits."""
        logits = logits.float()
        wanted = torch.tensor(self.output, device=logits.device).expand(len(logits), -1)
        odds = log_odds(logits, wanted)
        rest = -odds.shape[1] % size
        return F.pad(odds, (0, rest)).unflatten(1, (-1, size)).sum(dim=2)


def explain_reading(
    reading: Reading, *, integrated: bool | None = None
) -> tuple[list[TextOverlay], list[str]]:
    """Explain every token of an output by those of the source.

    Args:
        reading: what was read and said.
        integrated: whether to integrate gradients; None: where it costs little.

    Returns:
        Matrices of output x source tokens, and what one has to know about them.
    """
    device = reading.source.device
    with _recurrent_too(), torch.enable_grad(), record(gradients=True) as trace:
        with OperationCount() as count:
            logits = reading.run(reading.source)
        # A row of relevance asks for all maps and their gradients once more.
        entries = sum(each.heads * each.shape[0] * each.shape[1] for each in attentions(trace))
        row = 2 * count.total + ENTRY * entries
        affordable = int(WORTH[_kind(device)] / max(row, 1))
        size = -(-len(reading.output) // max(min(ROWS, affordable), 1))
        scores = reading.grouped(logits, size)[0]
    found: list[TextOverlay] = []
    notes: list[str] = []
    if size > 1:
        notes.append(f"Output tokens are explained {size} in a row at a time.")
    kept = [each for each in trace if is_attention(each)]
    crossed = any(_crosses(each.site) for each in kept)
    if crossed or (kept and all(each.site.stack == "encoder" for each in kept)):
        weights = torch.stack(
            [
                _relevance_of_text(trace, each, slice(number * size, (number + 1) * size))
                for number, each in enumerate(scores)
            ]
        )
        if len(trace) > len(kept):
            notes.append(
                "Relevance follows attention alone: what recurrent layers carry from token to "
                "token it does not know."
            )
        sums = weights.sum(dim=1, keepdim=True)
        legend = (
            "relevance of each source token to the log-odds of each output token (Chefer et al. "
            "2021); rows sum to 1"
        )
        shown = torch.where(sums > 0, weights / sums.clamp_min(1e-30), 0.0)
        found.append(_overlay(reading, "relevance", legend, shown, size, signed=False))
    else:
        notes.append("Relevance is not defined here: no attention leads from output to source.")
    cost = float(1 + 2 * len(scores)) * count.total  # of a step
    if integrated or (integrated is None and (not found or _worth(cost, device))):
        with _recurrent_too():
            parts = _integrated(reading, size, _most(cost, device))
        legend = (
            "integrated gradients: what each source token adds to the log-odds of each output "
            f"token, in {parts.steps} steps from zero embeddings of the whole source; negative "
            "speaks against"
        )
        shares = parts.parts.sum(dim=-1).cpu()  # over the numbers of an embedding
        found.append(_overlay(reading, "integrated gradients", legend, shares, size, signed=True))
        notes += _incomplete(parts)
    elif integrated is None:
        notes.append(_left_out(cost))
    return found, notes


def log_odds(logits: Tensor, wanted: Tensor) -> Tensor:
    """Say how much likelier a class is than all others together, log p / (1 - p).

    Unlike a logit it does not change when all logits do, and unlike a log-probability it does not
    stop to grow where p is close to 1.

    Args:
        logits: (..., class).
        wanted: (...) indices of classes.
    """
    own = logits.gather(-1, wanted[..., None])
    others = logits.scatter(-1, wanted[..., None], float("-inf"))
    return own[..., 0] - others.logsumexp(dim=-1)


def _where(features: FeatureRecord, score: Tensor, label: str, what: str) -> Attribution:
    """Say which places of a feature map speak for a score."""
    values = grad_cam(features, score)
    of = "the last feature map" if features.site.kind == MAP else "the tokens before the last block"
    rows, columns = features.places.grid
    scale = "the largest is 1" if values.any() else "no place speaks for it"
    legend = f"Grad-CAM for {what}, of {of}, {rows} x {columns}; {scale}"
    flat = values.flatten()
    return Attribution(
        "grad-cam", legend, label, features.places, flat, merged="mean", scaled="peak"
    )


def _relevance(
    trace: Trace, score: Tensor, label: str, what: str
) -> tuple[list[Attribution], list[str]]:
    found = weighed(trace, score)
    pools = [each for each in found if each.site.stack == POOL]
    layers = [each for each in found if each.site.stack != POOL]
    if not layers or layers[0].places is None:
        return [], []
    notes = []
    if pools:
        values = relevance_for_pool(layers, pools[0])
    else:
        values = relevance(layers, read_from(layers[-1]))
    if len({each.places for each in layers}) > 1 or any(
        each.places != each.attention.key_places for each in layers
    ):
        notes.append(
            "Relevance: where tokens are merged or keys are fewer, which the paper does not treat, "
            "it is shared equally by the tokens that one was made of."
        )
    windows = [each.attention.windows for each in layers]
    if any(each is not None and each.padding_seen and any(each.rest) for each in windows):
        notes.append("Relevance: what goes to the padding of windows is left out.")
    legend = f"relevance for {what} (Chefer et al. 2021) through {len(layers)} layers; sums to 1"
    return [
        Attribution("relevance", legend, label, layers[0].places, values, scaled="share")
    ], notes


def _relevance_of_text(trace: Trace, score: Tensor, group: slice) -> Tensor:
    """Explain a group of output tokens by the source's."""
    found = weighed(trace, score)
    crossed = any(_crosses(each.site) for each in found)
    start = torch.zeros(found[-1].attention.shape[0])
    start[group] = 1.0
    return relevance_of_source(found, start) if crossed else relevance(found, start)


def _crosses(site: Site) -> bool:
    return site.kind.startswith("cross")


@contextmanager
def _recurrent_too() -> Iterator[None]:
    """Let recurrent layers that are in use be asked for gradients, which cuDNN refuses."""
    with torch.backends.cudnn.flags(enabled=False):
        yield


def _integrated(reading: Reading, size: int, most: int) -> Integrated:
    with torch.no_grad():
        vectors = embeddings(reading.model, reading.source, lambda: reading.run(reading.source))[0]

    def scores(points: Tensor) -> Tensor:
        ids = reading.source.expand(len(points), -1)
        with changed(reading.model, ids, lambda _: points):
            return reading.scores(ids, size)

    return until_complete(scores, vectors, torch.zeros_like(vectors), most=most)


def _overlay(
    reading: Reading, name: str, legend: str, weights: Tensor, size: int, *, signed: bool
) -> TextOverlay:
    return text_overlay(
        name,
        legend,
        weights,
        rows=reading.output_tokens,
        columns=reading.source_tokens,
        size=size,
        row_spans=reading.output_spans,
        column_spans=reading.source_spans,
        signed=signed,
    )


def _baseline(kind: str, images: Tensor, black: Tensor) -> Tensor:
    """Make a picture without anything in it: (channel, height, width)."""
    if kind == "black":
        return black.to(images)
    if kind == "mean":
        return images[0].mean(dim=(1, 2), keepdim=True).expand_as(images[0])
    sides = images.shape[2:]
    reach = max(round(3 * BLURRED * min(sides)), 1)
    places = torch.arange(-reach, reach + 1, device=images.device, dtype=images.dtype)
    bell = (-0.5 * (places / (BLURRED * min(sides))) ** 2).exp()
    bell = bell / bell.sum()
    x = images[0][:, None]  # every channel by itself
    # Where the border would have to be repeated, not mirrored: a bell may be wider than a side.
    x = F.conv2d(F.pad(x, (reach, reach, 0, 0), mode="replicate"), bell.view(1, 1, 1, -1))
    return F.conv2d(F.pad(x, (0, 0, reach, reach), mode="replicate"), bell.view(1, 1, -1, 1))[:, 0]


def _of_pixels(parts: Integrated, baseline: str, label: str, what: str) -> Attribution:
    """Add what the channels of each pixel say, and pixels to cells, if there are many."""
    values = parts.parts[0].sum(dim=0).float().cpu()
    height, width = values.shape
    side = 1
    while -(-height // side) * -(-width // side) > CELLS:
        side += 1
    values = F.pad(values, (0, -width % side, 0, -height % side))
    values = values.unflatten(1, (-1, side)).unflatten(0, (-1, side)).sum(dim=(1, 3))
    rows, columns = values.shape
    places = Places((height, width), Axis(rows, 0, side, side), Axis(columns, 0, side, side))
    total = float(parts.difference[0])
    legend = (
        f"integrated gradients for {what} in {parts.steps} steps from {BASELINES[baseline]}; "
        f"negative speaks against, all add up to {total:.2f}"
    )
    return Attribution("integrated gradients", legend, label, places, values.flatten(), signed=True)


def _incomplete(parts: Integrated) -> list[str]:
    if parts.complete:
        return []
    worst = int(parts.missing.abs().argmax())
    return [
        f"Integrated gradients do not add up: {float(parts.missing[worst]):.2g} is missing of a "
        f"difference of {float(parts.difference[worst]):.2g}. More steps than {parts.steps} would "
        "be needed: read them as a sketch."
    ]


def _left_out(cost: float) -> str:
    return (
        f"Integrated gradients were left out: they would take {STEPS * cost / 1e12:.1f} trillion "
        "operations. Ask for them with --integrated (in Python: integrated=True)."
    )


def _kind(device: torch.device) -> str:
    return "cpu" if device.type == "cpu" else "other"


def _worth(cost: float, device: torch.device) -> bool:
    return STEPS * cost <= WORTH[_kind(device)]


def _most(cost: float, device: torch.device) -> int:
    """Choose how many steps integration may take, so that all of them cost what looking may."""
    return min(MOST, int(WORTH[_kind(device)] / max(cost, 1.0)))
