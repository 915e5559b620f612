"""Tiny models whose answers captum has explained, and how ours explains them.

The explanations are recorded in tests/golden/captum by `python -m benchmarks.goldens`, and compared
live by `make parity`.
"""

import torch
from torch import Tensor, nn

from manyheads.lens.attribution.grad_cam import grad_cam, last_features
from manyheads.lens.attribution.integrated_gradients import integrated_gradients
from manyheads.lens.trace.embeddings import changed, embeddings
from manyheads.models.model_config import ModelConfig
from manyheads.nn.recording.trace import record
from tests.small import ALL, CCTS, READERS, SEQ2SEQS, TRANSFORMERS

CONFIGS: dict[str, ModelConfig] = {
    "resnet-20": ALL["resnet-20"],
    "resnet-50": ALL["resnet-50"],
    "vgg-16": ALL["vgg-16"],
    "vit-b": ALL["vit-b"],
    "cct": CCTS["cct-7/3x1"],
    "transformer": TRANSFORMERS["untied"],
    "seq2seq": SEQ2SEQS["untied"],
    "bert": READERS["bert-tiny"],
}
TARGET = 1  # the class, or the token at the last place, that is explained
STEPS = 32


def explained(model: nn.Module, given: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Explain the answer to one image, or to one text at its last place."""
    first, *rest = given
    if not first.is_floating_point():
        vectors = embeddings(model, first, lambda: model(*given))[0]

        def scores(points: Tensor) -> Tensor:
            ids = first.expand(len(points), -1)
            with changed(model, ids, lambda _: points):
                answer: Tensor = model(ids, *(x.expand(len(points), -1) for x in rest))
            return answer[:, -1, TARGET, None]

        parts = integrated_gradients(scores, vectors, torch.zeros_like(vectors), steps=STEPS)
        return {"integrated": parts.parts[0]}
    with record(gradients=True) as trace:
        score = model(first)[0, TARGET]
    parts = integrated_gradients(
        lambda x: model(x)[:, TARGET, None], first[0], torch.zeros_like(first[0]), steps=STEPS
    )
    cam = grad_cam(last_features(trace)[0], score)
    return {"grad_cam": cam, "integrated": parts.parts[0]}


def difference(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """The largest difference, relative to the largest number of each kind."""
    assert found.keys() == expected.keys()
    return max(
        ((found[key] - wanted).abs().max() / wanted.abs().max()).item()
        for key, wanted in expected.items()
    )
