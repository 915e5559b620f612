"""Input of a wrong kind is refused with a sentence, not answered with other numbers."""

from collections.abc import Callable
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.presets import PRESETS, build, preset
from manyheads.models.tagger import RecurrentTaggerConfig
from manyheads.models.vit import VitConfig
from manyheads.nn import (
    LSTM,
    AttentionPool,
    ClassToken,
    ConvPatches,
    ConvProjectedAttention,
    ConvStem,
    LearnedPositions,
    LinearAttention,
    MeanPool,
    MultiHeadAttention,
    OverlappingPatches,
    PatchMeanPool,
    PatchMerging,
    Recurrent,
    SequencePool,
    SinusoidalPositions,
    TwoTokens,
    WindowedAttention,
    attend,
    attention_weights,
)
from manyheads.nn.attention.linear_attention import linear_attend
from tests.small import (
    CCTS,
    CONVOLUTIONAL,
    HYBRIDS,
    READERS,
    SEQ2SEQS,
    STAGED,
    TRANSFORMERS,
    VITS,
    inputs,
)


@pytest.fixture(autouse=True)
def unchecked_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What users have: the suite's own check of shapes would refuse the input first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


# --- Masks --------------------------------------------------------------------------------------

Q = torch.randn(1, 2, 5, 4)
CALLS: dict[str, Callable[[Any], Tensor]] = {
    "attend": lambda mask: attend(Q, Q, Q, mask),
    "attention_weights": lambda mask: attention_weights(Q, Q, mask),
    "linear_attend": lambda mask: linear_attend(Q, Q, Q, mask),
    "module": lambda mask: MultiHeadAttention(8, 2)(torch.randn(1, 5, 8), mask),
    "linear module": lambda mask: LinearAttention(8, 2)(torch.randn(1, 5, 8), mask),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_of_numbers_is_refused(call: Callable[[Any], Tensor], dtype: torch.dtype) -> None:
    """The fused kernel adds a float mask to the scores: the first token would see the last."""
    with pytest.raises(UsageError, match="a mask is boolean"):
        call(torch.ones(5, 5).tril().to(dtype)[:1])


def test_a_boolean_bias_is_refused() -> None:
    """Added to the scores, it would hide nothing."""
    with pytest.raises(UsageError, match="give it as the mask"):
        attend(Q, Q, Q, bias=torch.ones(5, 5, dtype=torch.bool))
    with pytest.raises(UsageError, match="give it as the mask"):
        attention_weights(Q, Q, bias=torch.ones(5, 5, dtype=torch.bool))


def test_queries_keys_and_values_are_not_three_arguments() -> None:
    """As torch's own module takes them: here the second is the mask."""
    x = torch.randn(1, 5, 8)
    with pytest.raises(UsageError, match=r"cross_attend\(x, project\(source\)\)"):
        MultiHeadAttention(8, 2)(x, x, x)


# --- The batch axis -----------------------------------------------------------------------------

# One of each module.
KINDS: tuple[Any, ...] = (VITS, CCTS, STAGED, HYBRIDS, CONVOLUTIONAL)
IMAGE_MODELS: dict[str, Any] = {
    type(each).__name__: each for kind in KINDS for each in kind.values()
}
ATTENTION = MultiHeadAttention(8, 2)
TOKENS, IMAGE = torch.randn(8, 8), torch.randn(3, 8, 8)
MODULES: dict[str, Callable[[], object]] = {
    "attention": lambda: ATTENTION(TOKENS),
    "linear attention": lambda: LinearAttention(8, 2)(TOKENS),
    "project": lambda: ATTENTION.project(TOKENS),
    "cross_attend": lambda: ATTENTION.cross_attend(TOKENS, ATTENTION.project(TOKENS[None])),
    "attend": lambda: attend(Q[0], Q[0], Q[0]),
    "windows": lambda: WindowedAttention(ATTENTION, (2, 4), shifted=True)(TOKENS, (2, 4)),
    "convolutions": lambda: ConvProjectedAttention(8, 2)(TOKENS, (2, 4)),
    "sinusoids": lambda: SinusoidalPositions(9, 8)(TOKENS),
    "positions": lambda: LearnedPositions(9, 8)(TOKENS),
    "class token": lambda: ClassToken(8)(TOKENS),
    "two tokens": lambda: TwoTokens(8)(TOKENS),
    "mean": lambda: MeanPool(8)(TOKENS),
    "patch mean": lambda: PatchMeanPool(8)(TOKENS),
    "sequence": lambda: SequencePool(8)(TOKENS),
    "attention pool": lambda: AttentionPool(8, 2)(TOKENS),
    "merging": lambda: PatchMerging(8)(TOKENS, (2, 4)),
    "recurrent": lambda: Recurrent(LSTM, 8, 8)(TOKENS),
    "patches": lambda: ConvPatches(3, 2, 8)(IMAGE),
    "stem": lambda: ConvStem(3, (8,))(IMAGE),
    "overlap": lambda: OverlappingPatches(3, 8, kernel=3, stride=2, padding=1)(IMAGE),
}


@pytest.mark.parametrize("call", MODULES.values(), ids=MODULES)
def test_a_module_needs_the_batch_axis(call: Callable[[], object]) -> None:
    """Of as many tokens as dimensions, some answered with a mean over the wrong axis."""
    with pytest.raises(UsageError, match=r"`x\[None\]` adds the batch axis"):
        call()


@pytest.mark.parametrize("config", IMAGE_MODELS.values(), ids=IMAGE_MODELS)
def test_an_image_model_needs_a_batch_of_values(config: Any) -> None:
    """One image alone, and pixels that were not normalised."""
    model = build(config).eval()
    (images,) = inputs(config)
    with pytest.raises(UsageError, match="batch, channel, height, width"):
        model(images[0])
    with pytest.raises(UsageError, match="normalised values"):
        model(images.to(torch.uint8))


@pytest.mark.parametrize("name", ["transformer-base", "seq2seq-lstm-attention", "seq2seq-gru"])
def test_a_translator_needs_a_batch_of_ids(name: str) -> None:
    """One sentence alone, and vectors in place of ids; in decoding too."""
    model: Any = build({**TRANSFORMERS, **SEQ2SEQS}[name]).eval()
    ids = torch.tensor([3, 4, 5])
    with pytest.raises(UsageError, match=r"not \(batch, token\)"):
        model(ids, ids)
    with pytest.raises(UsageError, match=r"not \(batch, token\)"):
        model.start(ids, 1, 4)
    with pytest.raises(UsageError, match="whole numbers"):
        model(ids[None].float(), ids[None])


@pytest.mark.parametrize("config", [*READERS.values(), RecurrentTaggerConfig(dim=8, hidden_size=8)])
def test_a_reader_needs_a_batch_of_ids(config: Any) -> None:
    """Language models and taggers."""
    model: nn.Module = build(config).eval()
    with pytest.raises(UsageError, match=r"not \(batch, token\)"):
        model(torch.tensor([3, 4, 5]))


# --- Presets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, 3, VitConfig, ["vit-b"]])
def test_build_needs_a_config_or_a_name(given: Any) -> None:
    """A class is no Config yet."""
    with pytest.raises(UsageError, match="neither a Config nor the name of a preset"):
        build(given)


@pytest.mark.parametrize("given", [None, 3, "vit-b/²", "vit-b/" + "9" * 5000, "vit-b/-1"])
def test_a_preset_needs_a_name_that_exists(given: Any) -> None:
    """Whatever stands behind the slash."""
    with pytest.raises(UsageError, match="preset"):
        preset(given)
    assert preset("vit-b/16") == PRESETS["vit-b"]
