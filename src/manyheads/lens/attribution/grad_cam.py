"""Grad-CAM: the positions of a feature map that raise a score.

Source: Selvaraju et al. 2017, "Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
Localization", section 3, equations 1 and 2.
"""

from jaxtyping import Float
from torch import Tensor

from manyheads.lens.attribution.gradients import gradients
from manyheads.nn.recording.features import MAP, TOKENS, FeatureRecord
from manyheads.nn.recording.trace import Trace


def grad_cam(features: FeatureRecord, score: Float[Tensor, ""]) -> Float[Tensor, "row column"]:
    """Weigh each channel by the mean gradient of the score, add them, and keep what is positive.

    Tokens on a grid are a feature map whose channels are their vectors.
    """
    (gradient,) = gradients(score, [features.x])
    x, slope = (features.to_map(each)[0].detach().float().cpu() for each in (features.x, gradient))
    weights = slope.mean(dim=(1, 2))  # equation 1
    return (weights[:, None, None] * x).sum(dim=0).relu()  # equation 2


def last_features(trace: Trace) -> list[FeatureRecord]:
    """Find the deepest feature maps of a model: of its tokens, and of its convolutions.

    Of the tokens, those that enter the last block: its output may be used for the class token only.
    """
    kept = [each for each in trace if isinstance(each, FeatureRecord)]
    ends = {each.layer_id.kind: each for each in kept}
    return [ends[kind] for kind in (TOKENS, MAP) if kind in ends]
