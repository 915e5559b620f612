"""The matcher: two towers that write unit vectors into one space, at test size."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.lens.trace.attention_reader import attentions
from manyheads.models.matcher import Matcher, MatcherConfig
from manyheads.models.model_config import ImageConfig
from manyheads.models.resize import resize
from manyheads.nn.recording.trace import record
from tests.small import ALL, MATCHERS, VITS, Images, inputs, randomise

VIT = MATCHERS["matcher-vit-ti"]
matchers = pytest.mark.parametrize("config", MATCHERS.values(), ids=MATCHERS)
_EVERY: dict[str, ImageConfig] = {n: c for n, c in ALL.items() if isinstance(c, Images)}
TOWERS = {name: config for config, name in {c: name for name, c in _EVERY.items()}.items()}


def make(config: MatcherConfig) -> Matcher:
    return randomise(config.build()).eval()


def close(actual: Tensor, expected: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


# --- Vectors ------------------------------------------------------------------------------------


@matchers
def test_vectors_have_length_1(config: MatcherConfig) -> None:
    """Of both sides, whatever the weights."""
    images, texts = make(config)(*inputs(config))
    for each in (images, texts):
        assert each.shape == (2, config.embedding)
        close(each.norm(dim=-1), torch.ones(2))


@matchers
def test_a_vector_does_not_depend_on_its_batch(config: MatcherConfig) -> None:
    """Nor on the other tower: there may be more texts than images."""
    model, (images, tokens) = make(config), inputs(config)
    together = model(images, tokens)
    for row in range(2):
        close(model.encode_images(images[row : row + 1]), together[0][row : row + 1])
        close(model.encode_texts(tokens[row : row + 1]), together[1][row : row + 1])
    close(model(images[:1], tokens)[1], together[1])


@matchers
def test_padding_does_not_change_a_text(config: MatcherConfig) -> None:
    """It is neither attended to nor averaged."""
    model, (_, tokens) = make(config), inputs(config)
    vectors = model.encode_texts(tokens)
    close(model.encode_texts(F.pad(tokens, (0, 5), value=config.pad)), vectors)
    close(model.encode_texts(tokens[1:, :3]), vectors[1:])  # the second has 3 tokens
    assert model.encode_texts(torch.full((1, 3), config.pad)).isfinite().all()


def test_order_matters_in_a_text() -> None:
    """It is no bag of words, though its vectors are averaged."""
    model = make(VIT)
    there, back = model.encode_texts(torch.tensor([[3, 4, 5], [5, 4, 3]]))
    assert (there - back).abs().max() > 1e-3


# --- Scores -------------------------------------------------------------------------------------


def test_scores_are_scaled_cosines_and_a_bias() -> None:
    """By hand: cosines 1, 0, 0.6, 0.8 times e^2, minus 10."""
    model = replace(VIT, embedding=2, score_bias=-10.0).build()
    with torch.no_grad():
        model.log_scale.fill_(2.0)
    images = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    texts = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    expected = math.exp(2) * torch.tensor([[1.0, 0.0], [0.6, 0.8]]) - 10
    close(model.scores(images, texts), expected)
    assert model.scores(images[:1], texts).shape == (1, 2)


def test_the_scale_at_first_and_at_most() -> None:
    """CLIP: 1 / 0.07 at first, 100 at most; SigLIP: 10, and a bias of -10 that learns."""
    one = torch.ones(1, 1)
    clip, siglip = VIT.build(), replace(VIT, score_bias=-10.0).build()
    close(clip.scores(one, one), torch.tensor([[1 / 0.07]]), atol=1e-4)
    close(siglip.scores(one, one), torch.tensor([[0.0]]), atol=1e-4)
    with torch.no_grad():
        clip.log_scale.fill_(9.0)
    close(clip.scores(one, one), torch.tensor([[100.0]]), atol=1e-3)
    assert "bias" not in dict(clip.named_parameters()).keys() | clip.state_dict().keys()
    assert "bias" in dict(siglip.named_parameters())


def test_projections_of_texts_begin_as_in_clip() -> None:
    """CLIP's text_projection: normal, with a standard deviation of width ** -0.5."""
    torch.manual_seed(0)
    weights = replace(VIT, dim=64, heads=2, embedding=256).build().texts.projection.weight
    assert weights.std().item() == pytest.approx(64**-0.5, rel=0.03)


# --- Towers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOWERS)
def test_any_classifier_is_an_image_tower(name: str) -> None:
    """Its head becomes the projection; every weight of both towers learns."""
    config = replace(VIT, image=TOWERS[name])
    model = config.build().train()
    images, tokens = inputs(config)
    positives = torch.eye(2)
    scores = model.scores(*model(images, tokens))
    (scores * (positives - 0.3)).sum().backward()
    for part, parameter in model.named_parameters():
        assert parameter.grad is not None, part
    assert model.images.head.weight.std() > 0.1  # type: ignore[union-attr,operator]
    assert model.log_scale.grad is not None
    assert model.eval().encode_images(images).shape == (2, 6)


def test_fresh_towers_give_different_vectors() -> None:
    """A classifier's head begins with zeros, of which no direction could be taken."""
    torch.manual_seed(0)
    images, texts = VIT.build().eval()(*inputs(VIT))
    for each in (images, texts):
        assert (each[0] - each[1]).abs().max() > 1e-3


def test_the_head_has_the_width_of_the_space() -> None:
    """Whatever the classes were."""
    config = replace(VIT, image=replace(VITS["vit-b"], classes=77), embedding=9)
    assert config.image.classes == 9
    assert make(config)(*inputs(config))[0].shape == (2, 9)
    with pytest.raises(UsageError, match="embedding is 0: it must be at least 1"):
        replace(VIT, embedding=0)


@dataclass(frozen=True, kw_only=True)
class HeadlessConfig(ImageConfig):
    """An image model whose last layer is no linear one."""

    def build(self) -> nn.Module:
        """Build it."""
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


def test_an_image_model_without_a_head_is_refused() -> None:
    with pytest.raises(UsageError, match="Sequential cannot be the image tower: it has no linear"):
        replace(VIT, image=HeadlessConfig()).build()


@matchers
def test_attention_of_the_towers_is_told_apart(config: MatcherConfig) -> None:
    """One pass through both: every layer has its own name, and only an image's has a grid."""
    with record() as trace:
        make(config)(*(each[:1] for each in inputs(config)))
    found = attentions(trace)
    names = [str(each.layer_id) for each in found]
    assert names[-2:] == ["text encoder layer 1 self", "text encoder layer 2 self"]
    assert len(set(names)) == len(names)
    assert [each.key_grid is None for each in found] == [False] * (len(found) - 2) + [True] * 2


@matchers
def test_another_image_size(config: MatcherConfig) -> None:
    """The image tower's tables are interpolated under their names in the whole."""
    state = make(config).state_dict()
    resized, fitted = resize(config, state, (2 * config.image.height, 2 * config.image.width))
    model = resized.build()
    model.load_state_dict(fitted)
    assert all(each.isfinite().all() for each in model(*inputs(resized)))
    assert any(fitted[name].shape != tensor.shape for name, tensor in state.items())
