"""What a line can read off a layer."""

import torch

from manyheads.lens.measures.linear_probe import probe
from manyheads.lens.trace.states import outputs, pooled
from manyheads.models.presets import build
from tests.small import VITS, randomise


def test_probe() -> None:
    """What a line can divide it divides; what is noise it guesses."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(400, 5, generator=random)
    labels = (x[:, 2] > 0).long()
    assert probe(x[:200], labels[:200], x[200:], labels[200:]) > 90
    noise = torch.randint(0, 2, (400,), generator=random)
    assert 35 < probe(x[:200], noise[:200], x[200:], noise[200:]) < 65


def test_a_probe_by_depth() -> None:
    """Bright on one side or the other: every layer of a random ViT tells, what goes in as well."""
    config = VITS["2-D sinusoids, attention pool"]
    model = randomise(build(config)).eval()
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 2
    shape = (40, config.channels, config.height, config.width)
    images = 0.1 * torch.randn(shape, generator=random)
    images[labels == 1] += 1.0
    layers = outputs(model, images)
    assert [layer.layer for layer in layers] == [0, 1, 2]
    for layer in layers:
        vectors = pooled(layer.x.float())
        assert probe(vectors[:20], labels[:20], vectors[20:], labels[20:]) >= 90
