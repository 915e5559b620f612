"""Views with everything in them that a page draws."""

from dataclasses import replace

import torch

from manyheads.lens.panels import (
    Bars,
    Curve,
    Figure,
    Heat,
    Interval,
    Lines,
    Panel,
    Scatter,
    Table,
)
from manyheads.lens.view.image_view import ImageView, OverlayView, image_view
from manyheads.lens.view.text_view import TextOverlay, TextView, text_view
from manyheads.models.seq2seq import Seq2Seq
from manyheads.models.transformer import Transformer
from manyheads.nn.recording.trace import record
from tests.lens import examples
from tests.small import SEQ2SEQS, STAGED, randomise

UNFRIENDLY = '▁</script><b>&"\u2028\u2029'  # a token that would break out of a page, if it could


def translation() -> TextView:
    """A date, with overlays and a figure of every kind."""
    view = examples.date_view()
    rows, columns = view.output, view.source
    weights = [[round(0.1 * (r - c), 4) for c in range(len(columns))] for r in range(len(rows))]
    signed = TextOverlay(
        "integrated gradients", "what speaks for and against", rows, columns, weights
    )
    return replace(view, overlays=[replace(signed, signed=True)], figures=figures())


def transformer() -> TextView:
    """All three kinds of attention, the decoder's under its mask."""
    torch.manual_seed(0)
    model = randomise(Transformer(examples.TRANSFORMER)).eval()
    with record() as trace, torch.no_grad():
        model(torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]]))
    return text_view(
        trace,
        source=["▁하나", "둘", UNFRIENDLY, "</s>"],
        output=["▁eins", "▁zwei", "</s>"],
        probabilities=[0.5, 0.25, 1.0],
    )


def copied() -> TextView:
    """A translation that reads like its source."""
    with record() as trace, torch.no_grad():
        Transformer(examples.TRANSFORMER).eval()(
            torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 5, 6, 7]])
        )
    tokens = ["▁7", "▁8", "▁9", "</s>"]
    return text_view(trace, source=tokens, output=tokens, probabilities=[0.5, 0.25, 1.0, 0.75])


def recurrent(name: str = "seq2seq-lstm-attention") -> TextView:
    """A translator with gates, with or without attention."""
    model = randomise(Seq2Seq(SEQ2SEQS[name])).eval()
    with record() as trace, torch.no_grad():
        model(torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]]))
    return text_view(
        trace,
        source=["▁Ein", "▁Hund", "▁läuft", "</s>"],
        output=["▁a", "▁dog", "</s>"],
        probabilities=[0.5, 0.25, 1.0],
    )


def tags() -> TextView:
    """A tagger's, or a language model's: one text on both sides, an answer a token."""
    return text_view(
        examples.text_trace(encoder_only=True),
        source=["a", "b", "c", "d"],
        output=["B", "I", "B", "I"],
        probabilities=[0.5, 0.25, 1.0, 0.75],
    )


def image() -> ImageView:
    """A ViT's, with an overlay on a grid of its own."""
    view = examples.small_image_view("class")
    overlay = OverlayView(
        "integrated gradients",
        "what speaks for three",
        "three",
        0,
        [0.5, -0.25, 0.0, 0.1, 0.2, 1.0],
        signed=True,
    )
    return replace(view, overlays=[*view.overlays, overlay], figures=figures())


def windowed() -> ImageView:
    """A Swin's: two stages, windows, shifted windows."""
    return image_view(
        examples.recorded(STAGED["swin-t"]), width=140, height=110, classes=[("left", 0.75)]
    )


def figures() -> list[Figure]:
    """One of every kind."""
    panels: list[Panel | Table] = [
        Heat("Similarity", "column", "row", [[1.0, None], [0.5, -1.0]], signed=True),
        Heat("Tiles", "", "", [[0.1] * 4] * 4, numbered=False, tile=[2, 2], scale=[0.0, 1.0]),
        Heat("Named", "", "", [[0.1, 0.9]], rows=["one"], columns=["▁a", "</s>"]),
        Lines(
            "Distance",
            "layer",
            "pixels",
            [
                Curve(
                    "mean",
                    [1.0, 2.0, 3.0],
                    [10.0, None, 30.0],
                    [9.0, None, 28.0],
                    [11.0, None, 33.0],
                ),
                Curve("field", [1.0, 2.0, 3.0], [3.0, 5.0, 7.0]),
            ],
        ),
        Lines(
            "Wavelengths",
            "dimension",
            "length",
            [Curve("one", [1.0, 10.0, 100.0], [6.3, 63.0, 6300.0])],
            log_x=True,
            log_y=True,
        ),
        Bars("Entropy", "bits", ["head 1", "head 2"], [Interval(1.0, 0.9, 1.2), Interval(0.5)]),
        Scatter(
            "Words",
            "first",
            "second",
            ["cat", "dog", "car"],
            [[0, 0], [0.5, 0.1], [3, 2]],
            groups=["animal", "animal", "thing"],
        ),
        Table("Loss", ["token", "p", "-log p"], [["Je", 0.8, 0.223], ["suis", 0.6, None]]),
    ]
    return [
        Figure("heads" if i < 3 else "rest", f"how {p.title} was measured", p)
        for i, p in enumerate(panels)
    ]
