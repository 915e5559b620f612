"""Explain a class of an image by gradients: relevance, Grad-CAM, integrated gradients.

Why these scores, baselines and limits: docs/decisions/explanations.md.
"""

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from manyheads.data.images.image_file import ImageContent
from manyheads.data.images.image_set import Preprocessing
from manyheads.lens.attribution.grad_cam import grad_cam, last_features
from manyheads.lens.attribution.gradients import weighed
from manyheads.lens.attribution.integrated_gradients import Integrated, until_complete
from manyheads.lens.attribution.relevance import read_from, relevance, relevance_for_pool
from manyheads.lens.view.image_view import CELLS, POOL, Attribution
from manyheads.looking.budget import integrate
from manyheads.nn.recording.features import MAP, FeatureRecord
from manyheads.nn.recording.token_grid import Axis, TokenGrid
from manyheads.nn.recording.trace import Trace, record
from manyheads.project.cost import OperationCount

BASELINES = {  # by name, in words
    "black": "a black image",
    "mean": "its own mean colour",
    "blur": "its own blur",
}
BLURRED = 0.1  # of the shorter side: standard deviation of the Gaussian that takes all detail away


def explain_class(
    model: nn.Module,
    images: Tensor,
    *,
    target: int,
    label: str,
    baseline: str = "black",
    black: Tensor,
    integrated: bool | None = False,
) -> tuple[list[Attribution], list[str]]:
    """Explain the logit of class `target` for one normalised image (1, channel, height, width).

    Gradients are integrated from `baseline`, if `integrated` is True, or None and the cost is low,
    and always where nothing else is defined; `black` is a black image, normalised. Returns
    overlays, and notes on how to read them.
    """
    inputs = images.detach().clone().requires_grad_()
    with torch.enable_grad(), record(gradients=True) as trace, OperationCount() as count:
        score = model(inputs)[0, target].float()
    what = f"the logit of {label}"
    overlays, notes = _relevance(trace, score, label, what)
    features = last_features(trace)
    overlays += [_where(each, score, label, what, alone=len(features) == 1) for each in features]
    if not overlays:
        notes.append("Relevance and Grad-CAM are not defined here: the model has no tokens or map.")

    def run(most: int) -> Integrated:
        start = _baseline(baseline, images, black)
        return until_complete(
            lambda x: model(x)[:, target, None].float(), images[0], start, most=most
        )

    cost = 3.0 * count.total  # of a step
    parts, told = integrate(integrated, cost, images.device, run, alone=not overlays)
    if parts is not None:
        overlays.append(_of_pixels(parts, baseline, label, what))
    return overlays, notes + told


def _relevance(
    trace: Trace, score: Tensor, label: str, what: str
) -> tuple[list[Attribution], list[str]]:
    weights = weighed(trace, score)
    pools = [each for each in weights if each.attention.layer_id.stack == POOL]
    layers = [each for each in weights if each.attention.layer_id.stack != POOL]
    grid = layers[0].attention.query_grid if layers else None
    if grid is None:
        return [], []
    notes = []
    if pools:
        values = relevance_for_pool(layers, pools[0])
    else:
        values = relevance(layers, read_from(layers[-1]))
    if len({g for one in layers for g in (one.attention.query_grid, one.attention.key_grid)}) > 1:
        notes.append(
            "Relevance: where tokens are merged or keys are fewer, which the paper does not treat, "
            "it is shared equally by the tokens that one was made of."
        )
    windows = [each.attention.partition for each in layers]
    if any(each is not None and each.padding_attended for each in windows):
        notes.append("Relevance: what goes to the padding of windows is left out.")
    scale = "sums to 1" if values.any() else "nothing speaks for it"
    legend = f"relevance for {what} (Chefer et al. 2021) through {len(layers)} layers; {scale}"
    return [Attribution("relevance", legend, label, grid, values, scaled="share")], notes


def _where(
    features: FeatureRecord, score: Tensor, label: str, what: str, *, alone: bool
) -> Attribution:
    """Show which positions of a feature map increase a score."""
    values = grad_cam(features, score)
    is_map = features.layer_id.kind == MAP
    of = "the last feature map" if is_map else "the tokens before the last block"
    rows, columns = features.grid.shape
    scale = "the largest is 1" if values.any() else "no place speaks for it"
    legend = f"Grad-CAM for {what}, of {of}, {rows} x {columns}; {scale}"
    kind = "" if alone else f", {'map' if is_map else 'tokens'}"  # a hybrid has both
    name, flat = f"grad-cam{kind}", values.flatten()
    return Attribution(name, legend, label, features.grid, flat, merged="mean", scaled="peak")


def _of_pixels(parts: Integrated, baseline: str, label: str, what: str) -> Attribution:
    """Sum over the channels of each pixel, and over cells of pixels, if there are many."""
    values = parts.parts[0].sum(dim=0).float().cpu()
    height, width = values.shape
    side = 1
    while -(-height // side) * -(-width // side) > CELLS:
        side += 1
    values = F.pad(values, (0, -width % side, 0, -height % side))
    values = values.unflatten(1, (-1, side)).unflatten(0, (-1, side)).sum(dim=(1, 3))
    rows, columns = values.shape
    places = TokenGrid((height, width), Axis(rows, 0, side, side), Axis(columns, 0, side, side))
    total = float(parts.difference[0])
    legend = (
        f"integrated gradients for {what} in {parts.steps} steps from {BASELINES[baseline]}; "
        f"orange lowers the score, all add up to {total:.2f}"
    )
    return Attribution("integrated gradients", legend, label, places, values.flatten(), signed=True)


def _baseline(kind: str, images: Tensor, black: Tensor) -> Tensor:
    """Make an image without content: (channel, height, width)."""
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


def shown_pixels(preprocessing: Preprocessing, image: ImageContent) -> np.ndarray:
    """Turn an image as the model saw it, uncropped, in colours that a screen has."""
    if isinstance(image, np.ndarray):  # of more bands than eyes have: their mean
        values = image.reshape(*image.shape[:2], -1).mean(axis=2, dtype=np.float32)
        return np.rint(255 * values / max(values.max(), 1e-9)).clip(0, 255).astype(np.uint8)
    shown = preprocessing.upright(image)
    if shown.mode == "RGBA":
        shown = Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown)
    if shown.mode not in ("L", "RGB"):
        shown = shown.convert("RGB")
    return np.array(shown, dtype=np.uint8)
