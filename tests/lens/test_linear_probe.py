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


def test_more_of_the_same_examples_is_the_same_probe() -> None:
    """The ridge counts by example: a set repeated fifty times gives the same classifier.

    Two features that are nearly equal, a = m + d and b = m - d with d = +-.03, and labels that only
    d tells: without a ridge d gets a large weight, and every answer is right. The ridge of .01 of
    an example's square (1) exceeds d's (.001), so m decides, which agrees with six labels in ten.
    """
    m = torch.tensor([1.0] * 10 + [-1.0] * 10)
    labels = torch.tensor([1] * 6 + [0] * 4 + [1] * 4 + [0] * 6)
    d = 0.03 * (2.0 * labels - 1)
    x = torch.stack((m + d, m - d), dim=1)
    assert probe(x, labels, x, labels) == 60
    assert probe(x.repeat(50, 1), labels.repeat(50), x, labels) == 60


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
