"""The captioner: any image encoder under the decoder of the Transformer, at test size."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.trace.attention_reader import attentions
from manyheads.models.captioner import Captioner, CaptionerConfig
from manyheads.models.image_features import feature_tokens
from manyheads.models.mlp import MlpConfig
from manyheads.models.model_config import ImageConfig
from manyheads.models.resize import resize
from manyheads.nn.recording.trace import record
from tests.small import ALL, CAPTIONERS, CCTS, VITS, Images, inputs, randomise

VIT = CAPTIONERS["captioner-vit-ti"]
captioners = pytest.mark.parametrize("config", CAPTIONERS.values(), ids=CAPTIONERS)

# Every image model that has vectors of parts: at test size, some presets are the same.
_EVERY: dict[str, ImageConfig] = {
    **{
        name: c for name, c in ALL.items() if isinstance(c, Images) and not isinstance(c, MlpConfig)
    },
    **{f"vit: {name}": config for name, config in VITS.items()},
    **{f"cct: {name}": config for name, config in CCTS.items()},
}
ENCODERS = {name: config for config, name in {c: name for name, c in _EVERY.items()}.items()}


def make(config: CaptionerConfig) -> Captioner:
    return randomise(config.build()).eval()


def close(actual: Tensor, expected: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


# --- The encoder --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODERS)
def test_any_image_model_encodes(name: str) -> None:
    """Tokens or the places of a feature map; every part of the whole takes part in learning.

    What stands behind the features, such as a classifier's head, is not there: a weight that
    nothing reads would be stored, and other ranks would wait for its gradient.
    """
    config = replace(VIT, image=ENCODERS[name])
    model = randomise(config.build()).train()
    images, target = inputs(config)
    memory = model.encode(images)
    assert memory.shape[::2] == (2, config.dim)
    logits = model(images, target)
    assert logits.shape == (2, 4, config.vocabulary)
    logits.square().sum().backward()
    for part, parameter in model.named_parameters():
        assert parameter.grad is not None, part
    heads = [part for part, _ in model.encoder.named_parameters() if "head" in part]
    assert not heads


def test_places_of_a_feature_map_are_written_row_by_row() -> None:
    """Two channels of 2 x 3 places: six vectors of two numbers, the first row first."""
    places = torch.arange(12.0).view(1, 2, 2, 3)
    assert feature_tokens(places).tolist() == [[[n, n + 6.0] for n in range(6)]]
    tokens = torch.randn(1, 4, 2)
    assert feature_tokens(tokens) is tokens


def test_a_perceptron_is_refused() -> None:
    """One vector for the whole image leaves nothing to attend to."""
    with pytest.raises(UsageError, match=r"MlpConfig has no features .* such as vit-ti, cct"):
        replace(VIT, image=MlpConfig())


@captioners
def test_words_are_attended_to_on_the_image(config: CaptionerConfig) -> None:
    """The keys of cross-attention stand on the grid of the encoder's tokens."""
    with record() as trace:
        make(config)(*(each[:1] for each in inputs(config)))
    cross = [each for each in attentions(trace) if each.layer_id.kind == "cross"]
    assert len(cross) == config.decoder_layers
    image: Any = config.image
    for each in cross:
        assert each.key_grid is not None
        assert each.key_grid.shape == image.grid
        assert each.shape == (4, each.key_grid.count)
        assert each.query_grid is None


# --- Several captions of one image --------------------------------------------------------------


@captioners
def test_owners_are_repeated_images(config: CaptionerConfig) -> None:
    """An image is encoded once; its captions share the keys and values, in any order."""
    model = make(config)
    images, _ = inputs(config)
    target = torch.randint(3, config.vocabulary, (5, 4))
    owners = torch.tensor([1, 0, 1, 1, 0])
    close(model(images, target, owners), model(images[owners], target))
    seen: list[int] = []
    handle = model.bridge.register_forward_hook(lambda part, given, out: seen.append(len(out)))
    model(images, target, owners)
    handle.remove()
    assert seen == [2]


def test_gradients_of_shared_images_add_up() -> None:
    """What an image's captions ask of its encoder is the sum of what each asks."""
    images, _ = inputs(VIT)
    target = torch.randint(3, VIT.vocabulary, (3, 4))
    owners = torch.tensor([0, 1, 0])
    gradients = []
    for given in ((images, target, owners), (images[owners], target)):
        model = make(VIT)
        model(*given).square().mean().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for shared, repeated in zip(*gradients, strict=True):
        assert shared is not None
        assert repeated is not None
        close(shared, repeated, atol=1e-5)


def test_an_image_without_captions_takes_no_part() -> None:
    """As with captions that are drawn, or all too long."""
    model, (images, target) = make(VIT), inputs(VIT)
    close(model(images, target[:1], torch.tensor([1])), model(images[1:], target[:1]))


# --- The target ---------------------------------------------------------------------------------


@captioners
def test_no_leak_from_the_future(config: CaptionerConfig) -> None:
    """What comes after position t leaves the logits of 0..t as they are."""
    model, (images, target) = make(config), inputs(config)
    logits = model(images, target)
    for t in range(target.shape[1] - 1):
        changed = target.clone()
        changed[:, t + 1 :] = (changed[:, t + 1 :] + 2) % 8 + 3
        after = model(images, changed)
        close(after[:, : t + 1], logits[:, : t + 1], atol=1e-6)
        assert (after[:, t + 1 :] - logits[:, t + 1 :]).abs().max() > 1e-3


@captioners
def test_a_caption_does_not_depend_on_its_batch(config: CaptionerConfig) -> None:
    """Alone, in company, and padded behind its end."""
    model, (images, target) = make(config), inputs(config)
    together = model(images, target)
    for row in range(2):
        close(model(images[row : row + 1], target[row : row + 1]), together[row : row + 1])
    close(model(images, F.pad(target, (0, 3), value=config.pad))[:, :4], together)


def test_only_what_is_scored_reaches_the_output_layer() -> None:
    """The same logits, row by row; and a loss in their place."""
    model, (images, target) = make(VIT), inputs(VIT)
    scored = torch.tensor([[True, False, True, False], [False, False, False, True]])
    logits = model(images, target)[scored]
    close(model(images, target, scored=scored), logits)
    total = partial(lambda output, x: output(x).logsumexp(-1).sum())
    close(model(images, target, scored=scored, readout=total), logits.logsumexp(-1).sum())


@captioners
@pytest.mark.parametrize("seed", range(3))
def test_steps_are_the_whole_target(config: CaptionerConfig, seed: int) -> None:
    """Start, step, reorder and keep in any order: the log-probabilities of the whole prefix."""
    torch.manual_seed(seed)
    model, beams = make(config), 3
    images = torch.randn(4, *inputs(config)[0].shape[1:])
    with torch.no_grad():
        state = model.start(images, beams, max_length=2)
        prefixes = torch.empty(4, beams, 0, dtype=torch.long)
        tokens = torch.full((4, beams), config.start)
        for step in range(6):
            prefixes = torch.cat((prefixes, tokens[..., None]), dim=2)
            found, state, weights = model.step_with_attention(tokens, state)
            whole = model(images.repeat_interleave(beams, dim=0), prefixes.flatten(0, 1))
            close(found, whole[:, -1].log_softmax(-1).unflatten(0, (-1, beams)))
            close(weights.sum(-1), torch.ones(len(images), beams))
            if step in (1, 3):
                kept = torch.randperm(len(images))[: len(images) - 1]
                state = model.keep(state, kept)
                images, prefixes = images[kept], prefixes[kept]
            if step % 2:
                origin = torch.randint(0, beams, (len(images), beams))
                state = model.reorder(state, origin)
                prefixes = prefixes.gather(1, origin[..., None].expand_as(prefixes))
            tokens = torch.randint(3, config.vocabulary, (len(images), beams))
    assert len(images) == 2


# --- The Config ---------------------------------------------------------------------------------


def test_one_matrix_for_embedding_and_output() -> None:
    """Unless the Config unties them."""
    tied, untied = VIT.build(), replace(VIT, tied=False).build()
    assert tied.output.weight is tied.target_embedding.weight
    assert untied.output.weight is not untied.target_embedding.weight


def test_the_encoder_may_be_wider_or_narrower_than_the_decoder() -> None:
    """The bridge between them is linear."""
    config = replace(VIT, dim=4, ffn_dim=8)
    assert config.build()(*inputs(config)).shape == (2, 4, VIT.vocabulary)


@captioners
def test_another_image_size(config: CaptionerConfig) -> None:
    """The encoder's tables are interpolated under their names in the whole."""
    state = make(config).state_dict()
    size = (2 * config.image.height, 2 * config.image.width)
    resized, fitted = resize(config, state, size)
    assert (resized.image.height, resized.image.width) == size
    model = resized.build()
    model.load_state_dict(fitted)
    assert model(*inputs(resized)).isfinite().all()
    assert any(fitted[name].shape != tensor.shape for name, tensor in state.items())
    same, again = resize(config, state, (config.image.height, config.image.width))
    assert same == config
    assert all(torch.equal(again[name], tensor) for name, tensor in state.items())
