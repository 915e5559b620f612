"""Hugging Face's Marian models answer and search the same as ours, and come back unchanged.

`python -m benchmarks.goldens` records the files; `make parity` compares with the library live.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert import marian_weights as marian
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.layers.positions import sinusoid_halves
from manyheads.train.model_tensors import restore, tensors
from tests.marian_search import LIMIT, SETTINGS, Setting, search
from tests.small import TRANSFORMERS, inputs, randomise

FOLDER = Path(__file__).parents[1] / "golden"
NAMES = ("hf-marian", "hf-marian-relu-separate", "hf-marian-gelu-untied")
TRAINED = "hf-marian-trained"
SHARED = "model.shared.weight"


@dataclass(frozen=True)
class Golden:
    config: dict[str, Any]
    weights: dict[str, Tensor]
    tensors: dict[str, Tensor]
    about: dict[str, str]

    def ours(self) -> Transformer:
        return build(*marian.read(self.config, self.weights))


def load(name: str) -> Golden:
    with safe_open(FOLDER / f"{name}.safetensors", framework="pt") as file:
        about = file.metadata()
        found = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    weights = {key.removeprefix("weights."): t for key, t in found.items() if "weights." in key}
    return Golden(json.loads(about["config"]), weights, found, about)


def build(config: TransformerConfig, state: dict[str, Tensor]) -> Transformer:
    model = Transformer(config).eval()
    restore(model, state, Path("the converted model"))
    return model


def test_every_recorded_file_is_tested() -> None:
    recorded = {path.stem for path in FOLDER.glob("hf-marian*")}
    # The last two in tests/data and tests/app.
    assert recorded == {*NAMES, TRAINED, "hf-marian-tokenizer", "hf-marian-hard"}


# --- Theirs to ours -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_converted_models_answer_the_same(name: str) -> None:
    """Within 1e-4 of the largest logit, on a padded batch."""
    golden = load(name)
    logits = golden.ours()(golden.tensors["source"], golden.tensors["target"])
    difference = (logits - golden.tensors["logits"]).abs().max()
    assert difference <= 1e-4 * golden.tensors["logits"].abs().max()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hf-marian", {"activation": "silu", "encoder_layers": 2, "decoder_layers": 1}),
        ("hf-marian-relu-separate", {"activation": "relu", "target_vocabulary": 20}),
        ("hf-marian-gelu-untied", {"tied": False, "scale_embedding": False, "output_bias": True}),
    ],
)
def test_the_configuration_is_read(name: str, expected: dict[str, Any]) -> None:
    config, _ = marian.read(load(name).config, load(name).weights)
    assert {key: getattr(config, key) for key in expected} == expected
    assert (config.pad, config.start, config.end) == (19, 19, 0)  # the padding starts a target
    assert config.positions == "sinusoidal-halves"


@pytest.mark.parametrize("name", [*NAMES, TRAINED])
def test_there_and_back_is_bitwise(name: str) -> None:
    """Every tensor and its type; the trained one is stored in 16 bits."""
    golden = load(name)
    about, weights = marian.write(*marian.read(golden.config, golden.weights))
    assert weights.keys() == golden.weights.keys()
    for key, tensor in golden.weights.items():
        assert weights[key].dtype == tensor.dtype, key
        assert torch.equal(weights[key], tensor), key
    # What a model says of training or search is not a matter of its shape.
    others = {"activation_dropout", "forced_eos_token_id"}
    assert len(about) > 20
    assert {key: about[key] for key in about if key not in others} == {
        key: golden.config[key] for key in about if key not in others
    }


def test_older_files_hold_more() -> None:
    """Tied matrices at each of their names, and the table of positions."""
    golden = load("hf-marian")
    old = dict(golden.weights)
    for name in ("lm_head", "model.encoder.embed_tokens", "model.decoder.embed_tokens"):
        old[f"{name}.weight"] = golden.weights[SHARED]
    for side in ("encoder", "decoder"):
        old[f"model.{side}.embed_positions.weight"] = sinusoid_halves(16, 8).half()
    config, state = marian.read(golden.config, golden.weights)
    old_config, old_state = marian.read(golden.config, old)
    assert old_config == config
    assert old_state.keys() == state.keys()
    assert all(torch.equal(old_state[name], state[name]) for name in state)


def test_a_bias_of_zeros_is_none() -> None:
    golden = load("hf-marian")
    golden.weights["final_logits_bias"].zero_()
    config, state = marian.read(golden.config, golden.weights)
    assert not config.output_bias
    assert torch.equal(marian.write(config, state)[1]["final_logits_bias"], torch.zeros(1, 24))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bart"}, "model_type 'bart', not 'marian'"),
        ({"activation_function": "swich"}, "'swich'; only 'gelu' or 'swish'"),
        ({"normalize_before": True}, "normalize_before = True; only False"),
        ({"static_position_embeddings": False}, "static_position_embeddings = False"),
        ({"decoder_attention_heads": 4}, "encoder_attention_heads 2 .* decoder_attention_heads 4"),
        ({"encoder_ffn_dim": 8}, "encoder_ffn_dim 8 and decoder_ffn_dim 16"),
        ({"pad_token_id": None}, "pad_token_id = None; it should be like 58100"),
        ({"pad_token_id": 24}, "pad_token_id 24, but only 24 tokens"),
        ({"tie_word_embeddings": False}, "shares its embeddings"),
        ({"encoder_layers": 3}, r"no tensor 'model\.encoder\.layers\.2\."),
        ({"encoder_layers": 1}, r"16 tensors .* no place for: model\.encoder\.layers\.1\."),
    ],
)
def test_what_cannot_be_mapped_is_refused(change: dict[str, Any], message: str) -> None:
    golden = load("hf-marian")
    with pytest.raises(UsageError, match=message):
        marian.read(golden.config | change, golden.weights)


def test_positions_of_their_own_are_refused() -> None:
    golden = load("hf-marian")
    table = {"model.encoder.embed_positions.weight": torch.randn(16, 8)}
    with pytest.raises(UsageError, match=r"its own positions in model\.encoder\.embed_positions"):
        marian.read(golden.config, golden.weights | table)


def test_matrices_that_should_be_tied_and_are_not() -> None:
    golden = load("hf-marian")
    untied = golden.weights | {"lm_head.weight": golden.weights[SHARED] + 1}
    with pytest.raises(UsageError, match=r"ties model\.shared\.weight and lm_head\.weight"):
        marian.read(golden.config, untied)


# --- Ours to theirs -----------------------------------------------------------------------------

PUBLISHED = {
    "the paper's": TRANSFORMERS["transformer-base"],
    "marian's": TRANSFORMERS["marian"],
    "untied": TRANSFORMERS["untied"],
    "two vocabularies": replace(TRANSFORMERS["untied"], target_vocabulary=9, tied=True),
    "odd": replace(TRANSFORMERS["transformer-base"], dim=9, heads=3, encoder_layers=1),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_model_answers_the_same(name: str) -> None:
    """Sinusoids in another order move every matrix, and nothing else changes."""
    config = PUBLISHED[name]
    model = randomise(Transformer(config)).eval()
    source, target = inputs(config)
    target = target.clamp(max=(config.target_vocabulary or config.vocabulary) - 1)
    again = build(*marian.read(*marian.write(config, tensors(model))))
    assert again.config.positions == "sinusoidal-halves"
    torch.testing.assert_close(again(source, target), model(source, target), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": "pre"}, "model.norm is 'pre'; Marian's format has only 'post'"),
        ({"positions": "learned"}, "model.positions is 'learned'.*'sinusoidal' or"),
        ({"positions": "rotary"}, "model.positions is 'rotary'"),
        ({"activation": "swiglu"}, "model.activation is 'swiglu'.*'silu' or 'relu' or 'gelu'"),
        ({"norm_eps": 1e-6}, "model.norm_eps is 1e-06; .* only 1e-05"),
    ],
)
def test_what_marian_has_not_is_refused(change: dict[str, Any], message: str) -> None:
    config = replace(TRANSFORMERS["transformer-base"], **change)
    with pytest.raises(UsageError, match=message):
        marian.write(config, tensors(Transformer(config)))


# --- Search -------------------------------------------------------------------------------------


@cache
def trained() -> tuple[Transformer, Golden]:
    golden = load(TRAINED)
    return golden.ours(), golden


def outputs() -> dict[Setting, list[list[int]]]:
    _, golden = trained()
    stored = golden.tensors["outputs"].tolist()
    return {
        Setting(**setting): [[token for token in row if token >= 0] for row in rows]
        for setting, rows in zip(json.loads(golden.about["settings"]), stored, strict=True)
    }


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_search_finds_their_tokens(setting: Setting) -> None:
    """Greedy and beam 4: length penalties, early stopping, banned padding, forced end."""
    model, golden = trained()
    assert search(model, golden.tensors["source"], setting) == outputs()[setting]


def test_their_outputs_could_tell_a_difference() -> None:
    """They vary, reach the limit, and every option changes some of them."""
    found = outputs()
    assert set(found) == set(SETTINGS)
    for rows in found.values():
        assert len(rows) >= 20
        assert len({tuple(row) for row in rows[:20]}) >= 15
        assert len({len(row) for row in rows}) >= 5
    changes: list[dict[str, Any]] = [
        {"beams": 4},
        {"length_penalty": 0.6},
        {"length_penalty": 1.4},
        {"early_stopping": True},
        {"banned": False, "renormalise": False},
        {"renormalise": True},
        {"forced_end": False},
    ]
    for change in changes:
        pairs = [(setting, replace(setting, **change)) for setting in found]
        assert any(found[a] != found[b] for a, b in pairs if b in found), change
    assert any(len(row) == LIMIT for rows in found.values() for row in rows)


# --- The layout that CTranslate2 reads, too ------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "unscaled"])
def test_the_padding_comes_last_and_the_answers_stay(tied: bool, scaled: bool) -> None:
    """CTranslate2 cuts off the last row and starts from zeros; probabilities are as before."""
    config = TransformerConfig(
        vocabulary=11, dim=8, heads=2, ffn_dim=12, encoder_layers=2, decoder_layers=2,
        tied=tied, scale_embedding=scaled,
    )  # fmt: skip
    ours = randomise(Transformer(config)).eval()
    theirs_config, state, order = marian.pad_last(config, tensors(ours))
    theirs = build(theirs_config, state)
    last = config.vocabulary - 1
    assert (theirs_config.pad, theirs_config.start, theirs_config.end) == (last, last, 1)
    assert order == [*range(1, 11), 0]
    assert not theirs.target_embedding.weight[last].any()
    new = torch.tensor([order.index(token) for token in range(11)])
    source = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
    target = torch.tensor([[1, 4, 5], [1, 9, 10]])
    shifted = new[target]
    shifted[:, 0] = last
    with torch.inference_mode():
        # Without our padding, which is never generated.
        expected = ours(source, target)[..., order[:-1]].log_softmax(-1)
        found = theirs(new[source], shifted).log_softmax(-1)
    torch.testing.assert_close(found[..., :-1], expected, rtol=1e-4, atol=1e-4)
    assert (found[..., -1] < -1000).all()


def test_a_model_of_that_layout_is_left_as_it_is() -> None:
    golden = load("hf-marian")
    golden.config["pad_token_id"] = golden.config["decoder_start_token_id"] = 23
    config, state = marian.read(golden.config, golden.weights)
    same, kept, order = marian.pad_last(config, state)
    assert (same, order) == (config, list(range(24)))
    assert all(kept[name] is state[name] for name in state)
