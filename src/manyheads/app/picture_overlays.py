"""Explain a class of a picture by gradients: relevance, Grad-CAM, integrated gradients.

Why these scores, baselines and limits: docs/decisions/explanations.md.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.app.budget import incomplete, left_out, most_steps, worth
from manyheads.app.cost import OperationCount
from manyheads.errors import UsageError, nearest
from manyheads.lens.grad_cam import grad_cam, last_features
from manyheads.lens.gradients import weighed
from manyheads.lens.integrated_gradients import Integrated, until_complete
from manyheads.lens.picture import CELLS, POOL, Attribution
from manyheads.lens.relevance import read_from, relevance, relevance_for_pool
from manyheads.nn.features import MAP, FeatureRecord
from manyheads.nn.places import Axis, Places
from manyheads.nn.trace import Trace, record

BASELINES = {  # by name, in words
    "black": "a black picture",
    "mean": "its own mean colour",
    "blur": "its own blur",
}
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
    features = last_features(trace)
    found += [_where(each, score, label, what, alone=len(features) == 1) for each in features]
    if not found:
        notes.append("Relevance and Grad-CAM are not defined here: the model has no tokens or map.")
    cost = 3.0 * count.total  # of a step
    if integrated or (integrated is None and (not found or worth(cost, images.device))):
        start, most = _baseline(baseline, images, black), most_steps(cost, images.device)
        parts = until_complete(
            lambda x: model(x)[:, target, None].float(), images[0], start, most=most
        )
        found.append(_of_pixels(parts, baseline, label, what))
        notes += incomplete(parts)
    elif integrated is None:
        notes.append(left_out(cost))
    return found, notes


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
    if any(each is not None and each.padding_attended for each in windows):
        notes.append("Relevance: what goes to the padding of windows is left out.")
    scale = "sums to 1" if values.any() else "nothing speaks for it"
    legend = f"relevance for {what} (Chefer et al. 2021) through {len(layers)} layers; {scale}"
    return [
        Attribution("relevance", legend, label, layers[0].places, values, scaled="share")
    ], notes


def _where(
    features: FeatureRecord, score: Tensor, label: str, what: str, *, alone: bool
) -> Attribution:
    """Say which places of a feature map speak for a score."""
    values = grad_cam(features, score)
    of = "the last feature map" if features.site.kind == MAP else "the tokens before the last block"
    rows, columns = features.places.grid
    scale = "the largest is 1" if values.any() else "no place speaks for it"
    legend = f"Grad-CAM for {what}, of {of}, {rows} x {columns}; {scale}"
    flat = values.flatten()
    # A hybrid has both.
    name = "grad-cam" if alone else f"grad-cam, {'map' if features.site.kind == MAP else 'tokens'}"
    return Attribution(name, legend, label, features.places, flat, merged="mean", scaled="peak")


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
