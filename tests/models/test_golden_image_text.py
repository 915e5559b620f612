"""Whole models of images and texts answer what Hugging Face answered: CLIP, SigLIP, captioners.

`python -m benchmarks.goldens` records the files; `make parity` compares with the library live.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.errors import UsageError
from manyheads.models.captioner import Captioner, CaptionerConfig
from manyheads.models.convert.captioner_weights import sinusoids
from manyheads.models.convert.families import IMAGE_TEXT
from manyheads.models.matcher import Matcher, MatcherConfig
from manyheads.models.presets import build
from manyheads.train.model_tensors import restore
from tests.small import randomise

FOLDER = Path(__file__).parents[1] / "golden" / "image-text"
NAMES = sorted(path.stem for path in FOLDER.iterdir())
MATCHERS = ("hf-clip", "hf-clip-old-end", "hf-siglip")
CAPTIONERS = tuple(name for name in NAMES if name not in MATCHERS)
every = pytest.mark.parametrize("name", NAMES)
captioners = pytest.mark.parametrize("name", CAPTIONERS)


@dataclass(frozen=True)
class Golden:
    kind: str
    settings: dict[str, Any]
    tensors: dict[str, Tensor]
    images: Tensor
    tokens: Tensor
    scores: Tensor
    searched: dict[str, Tensor]

    def convert(self) -> tuple[Any, dict[str, Tensor]]:
        return IMAGE_TEXT[self.kind](self.settings, self.tensors)

    def model(self) -> Any:
        config, state = self.convert()
        model = build(config).eval()
        restore(model, state, FOLDER)
        return model


def load(name: str) -> Golden:
    with safe_open(FOLDER / f"{name}.safetensors", framework="pt") as file:
        about = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    images, tokens, scores = (tensors.pop(key) for key in ("images", "tokens", "scores"))
    searched = {key: tensors.pop(key) for key in list(tensors) if key.startswith("searched.")}
    weights = {key.removeprefix("weights."): tensor for key, tensor in tensors.items()}
    by_beams = {key.removeprefix("searched."): each for key, each in searched.items()}
    return Golden(
        about["kind"], json.loads(about["settings"]), weights, images, tokens, scores, by_beams
    )


def test_all_are_recorded() -> None:
    assert {load(name).kind for name in NAMES} == set(IMAGE_TEXT)


def relative(found: Tensor, expected: Tensor) -> float:
    return ((found - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize("name", MATCHERS)
def test_matchers_score_pairs_the_same(name: str) -> None:
    """Within 1e-4 of the largest score; padded texts, and a scale beyond CLIP's limit too."""
    golden = load(name)
    model = golden.model()
    with torch.inference_mode():
        images, texts = model(golden.images, golden.tokens)
        found = model.scores(images, texts)
    assert (golden.scores[0] - golden.scores[1]).abs().max() > 0.01 * golden.scores.abs().max()
    assert relative(found, golden.scores) <= 1e-4


@captioners
def test_captioners_score_texts_the_same(name: str) -> None:
    golden = load(name)
    with torch.inference_mode():
        logits = golden.model()(golden.images, golden.tokens)
    assert relative(logits, golden.scores) <= 1e-4


@captioners
def test_captioners_write_the_same(name: str) -> None:
    """Greedily and with three beams, to the end or to seven tokens."""
    golden = load(name)
    model = golden.model()
    ids = {"start": model.config.start, "end": model.config.end}
    assert set(golden.searched) == {"1", "3"}
    for beams, expected in golden.searched.items():
        limits = [expected.shape[1]] * len(expected)
        found = [
            best for best, *_ in beam_search(model, golden.images, limits, beams=int(beams), **ids)
        ]
        if beams == "1":
            greedy = greedy_search(model, golden.images, limits, **ids)
            assert [each.tokens for each in greedy] == [each.tokens for each in found]
        rows = [best.tokens + [ids["end"]] * best.finished for best in found]
        padded = [row + [model.config.pad] * (expected.shape[1] - len(row)) for row in rows]
        assert padded == expected.tolist()


@every
def test_every_tensor_matters_or_is_known_not_to(name: str) -> None:
    golden = load(name)
    for missing in ("logit_scale", "text_projection.weight", "decoder.transformer.ln_f.weight"):
        if missing in golden.tensors:
            without = {n: t for n, t in golden.tensors.items() if n != missing}
            with pytest.raises(UsageError, match=f"no tensor '{missing}'"):
                replace(golden, tensors=without).convert()
    for extra in ("vision_model.extra", "text_model.extra", "encoder.extra", "decoder.extra"):
        if extra.partition(".")[0] + "." in {n.partition(".")[0] + "." for n in golden.tensors}:
            more = golden.tensors | {extra: torch.ones(8)}
            with pytest.raises(UsageError, match=r"no place for: .*extra"):
                replace(golden, tensors=more).convert()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("hf-clip", {"causal": True, "text_pool": "end", "end": 11, "start": 0, "embedding": 6}),
        ("hf-clip-old-end", {"end": 11}),  # the largest of twelve
        (
            "hf-siglip",
            {"causal": False, "text_pool": "last", "projection_bias": True, "embedding": 8},
        ),
        ("hf-trocr", {"norm": "post", "embedding_norm": True, "bridge": False, "source_dim": 8}),
        ("hf-trocr-deit-wide", {"dim": 12, "source_dim": 8, "bridge": False}),
        ("hf-trocr-projected", {"dim": 12, "source_dim": 12, "bridge": True}),
        ("hf-trocr-sinusoidal", {"embedding_norm": False, "scale_embedding": True}),
        ("hf-gpt2", {"norm": "pre", "activation": "gelu-tanh", "tied": True, "start": 2}),
        ("hf-gpt2-projected-untied", {"tied": False, "bridge": True}),
    ],
)
def test_what_the_config_says(name: str, parts: dict[str, Any]) -> None:
    config, _ = load(name).convert()
    assert {key: getattr(config, key) for key in parts} == parts


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hf-trocr", {"encoder": {"model_type": "swin"}}, "encoder 'swin' and the decoder 'trocr'"),
        ("hf-trocr", {"decoder": {"model_type": "bert"}}, "decoder 'bert'.* gpt2, trocr"),
        ("hf-trocr", {"decoder": 3}, "decoder = 3; it should be a table"),
        ("hf-trocr", {"decoder_start_token_id": None}, None),
        ("hf-gpt2", {"scale_attn_weights": False}, "scale_attn_weights = False"),
        ("hf-trocr", {"activation_function": "mish"}, "activation_function = 'mish'"),
    ],
)
def test_what_cannot_be_mapped_is_refused(
    name: str, change: dict[str, Any], message: str | None
) -> None:
    golden = load(name)
    settings = dict(golden.settings)
    if set(change) & {"encoder", "decoder", "decoder_start_token_id"}:
        settings |= change
    else:
        settings["decoder"] = settings["decoder"] | change
    changed = replace(golden, settings=settings)
    if message is None:  # the decoder's own table says it too
        assert changed.convert()[0].start == golden.convert()[0].start
        return
    with pytest.raises(UsageError, match=message):
        changed.convert()


def test_the_start_of_texts_must_be_told() -> None:
    golden = load("hf-gpt2")
    settings = dict(golden.settings)
    for table in (settings, settings["decoder"]):
        table.pop("decoder_start_token_id", None)
    with pytest.raises(UsageError, match="does not say decoder_start_token_id"):
        replace(golden, settings=settings).convert()


def test_sinusoids_of_tensor2tensor_by_hand() -> None:
    """Width 4: wavelengths 1 and 10000; ours divide by the width, theirs by one less."""
    table = sinusoids(3, 4)
    angles = torch.tensor([[2.0, 2.0 / 10000]])
    torch.testing.assert_close(table[2], torch.cat((angles.sin(), angles.cos()), dim=1)[0])


# --- The options that they need -----------------------------------------------------------------


TEXTS = MatcherConfig(
    vocabulary=20, dim=8, heads=2, ffn_dim=16, layers=1, embedding=6, dropout=0.0, end=2
)


def small_matcher(**options: Any) -> Matcher:
    image = replace(TEXTS.image, height=4, width=4, patch=2, dim=8, heads=2, ffn_dim=16, layers=1)  # type: ignore[call-arg]
    return randomise(Matcher(replace(TEXTS, image=image, **options))).eval()


@torch.inference_mode()
def test_behind_the_end_of_a_causal_text_anything_may_stand() -> None:
    model = small_matcher(causal=True, text_pool="end", start=1)
    texts = torch.tensor([[1, 5, 6, 2, 0, 0], [1, 5, 6, 2, 9, 2]])
    first, second = model.encode_texts(texts)
    torch.testing.assert_close(first, second)
    alone = model.encode_texts(texts[:1, :4])
    torch.testing.assert_close(alone[0], first)


@torch.inference_mode()
def test_the_last_token_reads_padding() -> None:
    model = small_matcher(text_pool="last")
    short = model.encode_texts(torch.tensor([[5, 6, 2]]))
    padded = model.encode_texts(torch.tensor([[5, 6, 2, 0]]))
    assert (short - padded).abs().max() > 1e-3


@torch.inference_mode()
def test_a_scale_without_a_limit() -> None:
    vectors = torch.eye(6)
    for limit, largest in ((100.0, 100.0), (0.0, 200.0)):
        model = small_matcher(scale_limit=limit)
        model.log_scale.fill_(torch.tensor(200.0).log())
        assert model.scores(vectors, vectors).max().item() == pytest.approx(largest)


def test_a_captioner_without_a_bridge_reads_the_encoders_width() -> None:
    config = CaptionerConfig(
        image=replace(TEXTS.image, height=4, width=4, patch=2, dim=12, heads=2, layers=1),  # type: ignore[call-arg]
        vocabulary=20,
        dim=8,
        heads=2,
        ffn_dim=16,
        decoder_layers=1,
        bridge=False,
        embedding_norm=True,
    )
    model = randomise(Captioner(config)).eval()
    assert model.decoder.blocks[0].cross.kv.weight.shape == (16, 12)
    images, target = torch.randn(2, 3, 4, 4), torch.tensor([[1, 5, 6], [1, 7, 8]])
    logits = model(images, target)
    state = model.start(images, 1, 3)
    for position in range(3):  # step by step as at once
        scores, state = model.step(target[:, position : position + 1], state)
        torch.testing.assert_close(scores[:, 0], logits[:, position].log_softmax(dim=-1))
