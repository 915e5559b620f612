"""V8, E5, E12: parameter counts of well-known models, and the share of attention."""

import torch
from torch import nn

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.lab_training import parameters
from manyheads.lens.panels import number
from manyheads.models.presets import build, preset
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.vision.convolution import Convolution

# The numbers in papers, in millions, and why an exact count differs; "said": in slides.
PAPERS: dict[str, tuple[float | None, str]] = {
    "transformer-base": (65, "depends on the vocabulary; here 37,000 shared tokens"),
    "transformer-big": (213, "the same"),
    "vit-b/16": (86, "85.8M without a head; here with one of 1,000 classes"),
    "vit-l/16": (307, "the count of L/32, whose patches are larger: 306.5M with 1,000 classes"),
    "vit-h/14": (632, "rounded; with 1,000 classes"),
    "resnet-50": (None, "25.6M in many places"),
    "resnet-152": (60.2, "as commonly given"),
    "vgg-16": (138, "slides that say 175M are wrong"),
    "bit-152x4": (None, "BiT-L: a ResNet, in spite of being ViT's rival"),
    "cct-7/3x1": (3.76, ""),
    "swin-t": (29, "rounded"),
}
SAID_OF_VGG = 175.0  # millions: the figure of E5


def count(name: str) -> Measured:
    """Count a preset's parameters, attentions and convolutions, without allocation."""
    with torch.device("meta"):
        model = build(preset(name))
    attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    convolutions = [part for part in model.modules() if isinstance(part, nn.Conv2d)]
    return {
        "parameters": parameters(model),
        "attentions": len(attentions),
        "in attention": sum(map(parameters, attentions)),
        "convolutions": len(convolutions),
        "in convolutions": sum(map(parameters, convolutions)),
    }


def compare(width: int) -> Measured:
    """Count the weights of an attention and a 3 x 3 convolution of equal width, without biases."""
    with torch.device("meta"):
        attention = MultiHeadAttention(width, 1)
        convolution = Convolution(width, width, 3)
    return {
        "attention": sum(p.numel() for p in attention.parameters() if p.ndim > 1),
        "convolution": sum(p.numel() for p in convolution.parameters() if p.ndim > 1),
    }


def conclude(models: dict[str, Measured], widths: dict[int, Measured]) -> str:
    """Conclude which is larger."""
    vit, vgg, bit = (models[name] for name in ("vit-b/16", "vgg-16", "bit-152x4"))
    ratio = [each["attention"] / each["convolution"] for each in widths.values()]
    more = "fewer" if max(ratio) < 1 else "more"
    million = vgg["parameters"] / 1e6
    smaller = "smaller" if vit["parameters"] < vgg["parameters"] else "larger"
    kind = "no attention at all" if bit["attentions"] == 0 else f"{bit['attentions']} attentions"
    return (
        f"An attention has {more} weights than a 3 x 3 convolution of equal width "
        f"({number(min(ratio))} times as many), ViT-B/16 ({vit['parameters'] / 1e6:.1f}M) is "
        f"{smaller} than VGG-16 ({million:.1f}M, not {SAID_OF_VGG:.0f}M), and BiT-152x4 has "
        f"{bit['convolutions']} convolutions and {kind}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Count all models."""
    models = bench.measured("{}", size.models, count)
    widths = bench.measured("width {}", size.widths, compare)
    return conclude(models, widths), {
        "counts": {
            name: {
                "parameters": measured["parameters"],
                "paper, M": PAPERS[name][0],
                "attentions": measured["attentions"],
                "share": _share(measured, "in attention"),
                "convolutions": measured["convolutions"],
                "share ": _share(measured, "in convolutions"),
                "remark": PAPERS[name][1],
            }
            for name, measured in models.items()
        },
        "widths": {
            n: {**measured, "ratio": measured["attention"] / measured["convolution"]}
            for n, measured in widths.items()
        },
        "millions": {name: measured["parameters"] / 1e6 for name, measured in models.items()},
    }


def _share(measured: Measured, where: str) -> str:
    return f"{measured[where] / measured['parameters']:.0%}"
