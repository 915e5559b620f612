"""What follows from a change inside a model: patching, direct contributions, early exits."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.cause.contributions import (
    attention_modules,
    contributions,
    weights_by_norm,
)
from manyheads.lens.cause.patching import (
    attribute,
    depth,
    end_early,
    head_sites,
    linked,
    patch_heads,
    patch_states,
    permuted,
    share,
    uniform,
    without_largest,
    words,
)
from manyheads.models.cct import CctConfig
from manyheads.models.hybrid import HybridConfig
from manyheads.models.presets import build
from manyheads.models.transformer import Transformer
from manyheads.models.vit import Vit, VitConfig
from manyheads.nn.editing.edits import edit, recorded
from manyheads.nn.recording.trace import LayerId, Trace, record
from tests.small import CCTS, HYBRIDS, SEQ2SEQS, TRANSFORMERS, VITS, inputs, randomise

ONE = torch.tensor([[5, 6, 7, 2]])
OTHER = torch.tensor([[5, 9, 7, 2]])
READ = torch.tensor([[1, 3, 4]])
SINGLES = [[n] for n in range(4)]
LINKS = list(zip(SINGLES, SINGLES, strict=True))


def translator(name: str = "transformer-base") -> Transformer:
    model = randomise(build(TRANSFORMERS[name])).eval()
    assert isinstance(model, Transformer)
    return model


def scored(model: Transformer, source: Tensor) -> Callable[[int], Tensor]:
    def run(rows: int) -> Tensor:
        logits = model(source.expand(rows, -1), READ.expand(rows, -1))[:, -1]
        return logits[:, 4] - logits[:, 8]

    return run


def source_trace(model: Transformer, source: Tensor = OTHER) -> Trace:
    with torch.no_grad(), record(states=True) as trace:
        scored(model, source)(1)
    return trace


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([5, 6, 2], [5, 6, 2], [0, 1, 2]),
        ([5, 6, 2], [5, 9, 8, 2], [0, 1, 3]),  # one token against two
        ([5, 6, 7, 2], [5, 9, 2], [0, 1, 1, 2]),  # two against one
        ([5, 6, 2], [5, 2], [0, 1, 1]),  # nothing stands for the second
        ([5, 2], [5, 6, 2], [0, 2]),
    ],
)
def test_counterparts_of_tokens(one: list[int], other: list[int], expected: list[int]) -> None:
    assert linked(one, other) == expected


def test_pieces_are_merged_into_words() -> None:
    """White space divides; what ends a text has no characters."""
    text = "A bicycle. Go"
    spans = [[0, 1], [2, 6], [6, 9], [9, 10], [11, 13], None]
    assert words(spans, text) == [[0], [1, 2, 3], [4], [5]]


@pytest.mark.parametrize("name", ["transformer-base", "pre-norm gelu"])
def test_only_the_changed_token_matters_at_the_input(name: str) -> None:
    """Exact: at the input the whole difference is in the one token that differs."""
    model = translator(name)
    own, end = (float(scored(model, each)(1).detach()) for each in (ONE, OTHER))
    found = share(
        patch_states(scored(model, ONE), source_trace(model), "encoder", 2, LINKS), own, end
    )
    assert found.shape == (3, 4)
    torch.testing.assert_close(found[0], torch.tensor([0.0, 1, 0, 0]), atol=1e-4, rtol=0)
    whole = [(range(4), range(4))]
    for layer in patch_states(scored(model, ONE), source_trace(model), "encoder", 2, whole):
        assert float(layer) == pytest.approx(end, abs=1e-5)


def test_a_patched_head_is_an_edit_of_that_head() -> None:
    model, trace = translator(), source_trace(translator())
    site = LayerId("decoder", 1, "cross head")
    found = patch_heads(scored(model, ONE), trace, site)
    for head in (1, 2):
        with torch.no_grad(), edit() as changes:
            changes.head("decoder", 2, "cross", head).take(trace)
            expected = scored(model, ONE)(1)
        assert float(found[head - 1]) == pytest.approx(float(expected), abs=1e-6)


def test_equal_scores_explain_nothing() -> None:
    with pytest.raises(UsageError, match="same score"):
        share(torch.zeros(2), 1.0, 1.0)


def test_attribution_is_exact_where_the_model_is_linear() -> None:
    """The last decoder layer of a post-norm model, at the last token, reads into the logits."""
    model, trace = translator("pre-norm gelu"), source_trace(translator("pre-norm gelu"))
    run = scored(model, ONE)
    norm = model.decoder.norm
    model.decoder.norm = torch.nn.Identity()  # without it the logits are linear in the state
    trace = source_trace(model)
    site = LayerId("decoder", 1, "state")
    (found,) = attribute(run, trace, [site], {}).values()
    expected = float((scored(model, OTHER)(1) - run(1)).detach())
    assert float(found[-1]) == pytest.approx(expected, abs=1e-5)
    assert found[:-1].abs().max() == 0  # other tokens are not read
    model.decoder.norm = norm


def test_integrated_attribution_is_complete() -> None:
    """Over all tokens of the input the integrated effects sum to the whole difference."""
    model = translator()
    run, trace = scored(model, ONE), source_trace(model)
    entry = LayerId("encoder", -1, "state")
    whole = float((scored(model, OTHER)(1) - run(1)).detach())
    (found,) = attribute(run, trace, [entry], {}, steps=200).values()
    assert float(found.sum()) == pytest.approx(whole, abs=2e-3)


def by_hand(model: Vit, images: Tensor, direction: Tensor) -> tuple[dict[str, float], float]:
    """The parts of a pre-norm ViT: (x - mean) / deviation * gain, along the rows of the head."""
    with torch.no_grad(), record(states=True) as trace:
        model(images)
    layers = depth(trace, "encoder")
    final = recorded(trace, LayerId("encoder", layers - 1, "state"))[0, 0]
    norm = model.encoder.norm
    assert isinstance(norm, torch.nn.LayerNorm)
    deviation = (final.var(unbiased=False) + norm.eps).sqrt()

    gain = norm.weight.detach()

    def part(x: Tensor) -> float:
        return float((((x - x.mean()) / deviation * gain) @ direction).detach())

    parts = {"input": part(recorded(trace, LayerId("encoder", -1, "state"))[0, 0])}
    biases = float((norm.bias @ direction).detach())
    for layer, block in enumerate(model.encoder.blocks):
        added = LayerId("encoder", layer, "added feedforward")
        parts[f"{layer} feedforward"] = part(recorded(trace, added)[0, 0])
        heads = recorded(trace, LayerId("encoder", layer, "self head"))[0, :, 0]
        size = heads.shape[1]
        for head, z in enumerate(heads):
            columns = block.attention.out.weight[:, head * size : (head + 1) * size]
            parts[f"{layer} head {head}"] = part(columns @ z)
        biases += part(block.attention.out.bias)
    return parts, biases


def test_direct_contributions_by_hand() -> None:
    """Every head, every feed-forward, the input and the biases of a small pre-norm ViT."""
    model = randomise(build(VITS["vit-b"])).eval()
    assert isinstance(model, Vit)
    (images,) = inputs(VITS["vit-b"])
    images = images[:1]
    found = contributions(lambda: model(images)[0] @ torch.tensor([0.0, -1, 1, 0, 0]))
    direction = (model.head.weight[2] - model.head.weight[1]).detach()
    parts, biases = by_hand(model, images, direction)
    biases += float((model.head.bias[2] - model.head.bias[1]).detach())
    ours = {"input": found.parts[LayerId("encoder", -1, "state")]}
    for layer in range(2):
        site = LayerId("encoder", layer, "added feedforward")
        ours[f"{layer} feedforward"] = found.parts[site]
        for head, value in enumerate(found.heads[LayerId("encoder", layer, "self head")].tolist()):
            ours[f"{layer} head {head}"] = value
    assert ours == pytest.approx(parts, abs=1e-4)
    assert found.rest == pytest.approx(biases, abs=1e-4)
    assert sum(parts.values()) + biases == pytest.approx(found.total, abs=1e-4)


@pytest.mark.parametrize("name", ["transformer-base", "pre-norm gelu"])
def test_sources_sum_to_their_head(name: str) -> None:
    model = translator(name)
    found = contributions(lambda: scored(model, ONE)(1)[0])
    assert {site.stack for site in found.heads} == {"decoder"}
    for site, sources in found.sources.items():
        torch.testing.assert_close(sources.sum(dim=1), found.heads[site], atol=1e-5, rtol=1e-4)


def test_post_norm_parts_are_those_of_the_scaled_stream() -> None:
    """By hand: what enters the decoder, and all biases, through the frozen norms behind them."""
    model = translator("transformer-base")
    found = contributions(lambda: scored(model, ONE)(1)[0])
    with torch.no_grad(), record(states=True) as trace:
        scored(model, ONE)(1)
    direction = (model.output.weight[4] - model.output.weight[8]).detach()
    x = recorded(trace, LayerId("decoder", -1, "state"))[0, -1]
    part, shift = x, torch.zeros_like(x)
    for layer, block in enumerate(model.decoder.blocks):
        for kind in ("attention", "cross", "feedforward"):
            y = recorded(trace, LayerId("decoder", layer, f"added {kind}"))[0, -1]
            norm = getattr(block, f"around_{kind}").norm
            total = x + y
            scale = norm.weight / (total.var(unbiased=False) + norm.eps).sqrt()
            x = (total - total.mean()) * scale + norm.bias
            part = (part - part.mean()) * scale  # of what entered the stack
            bias = (
                torch.zeros_like(x)
                if kind == "feedforward"
                else getattr(block, "cross" if kind == "cross" else "attention").out.bias
            )
            shift = (shift + bias - (shift + bias).mean()) * scale + norm.bias
    entry = found.parts[LayerId("decoder", -1, "state")]
    assert entry == pytest.approx(float((part @ direction).detach()), abs=1e-4)
    assert found.rest == pytest.approx(float((shift @ direction).detach()), abs=1e-4)


@pytest.mark.parametrize(
    "config",
    [*CCTS.values(), *HYBRIDS.values(), VITS["layer scale"], VITS["2-D sinusoids, attention pool"]],
)
def test_parts_of_other_image_models(config: CctConfig | HybridConfig | VitConfig) -> None:
    """Pools keep their frozen maps: the parts are found, and the score is that of the model."""
    model, given = randomise(build(config)).eval(), inputs(config)
    found = contributions(lambda: model(given[0][:1])[0] @ torch.tensor([-1.0, 1, 0, 0, 0]))
    with torch.no_grad():
        logits = model(given[0][:1])[0]
    assert found.total == pytest.approx(float(logits[1] - logits[0]), abs=1e-5)
    assert all(float(each.abs().sum()) > 0 for each in found.heads.values())
    assert len(found.heads) == 2


def test_two_passes_have_no_parts() -> None:
    """The parts of one pass would silently be left out."""
    model = translator()
    with pytest.raises(UsageError, match="ran twice"):
        contributions(lambda: scored(model, ONE)(1)[0] - scored(model, OTHER)(1)[0])


def test_weights_by_norm_by_hand() -> None:
    """Of one head, query and key: the length of weight times value times its columns."""
    model, trace = translator(), source_trace(translator())
    layer_id = LayerId("decoder", 1, "cross")
    attention = attention_modules(model)[layer_id]
    found = weights_by_norm(trace, attention)
    v = recorded(trace, LayerId("decoder", 1, "cross v"))
    weights = recorded(trace, LayerId("decoder", 1, "cross pattern"))
    expected = weights[0, 1, 2, 3] * (attention.out.weight[:, 4:8] @ v[0, 1, 3]).norm()
    assert float(found[0, 1, 2, 3]) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_ending_early_reads_an_earlier_state() -> None:
    """The logit lens by hand: the output layer over an earlier state."""
    model = translator()
    with torch.no_grad():
        with record(states=True) as trace:
            plain = model(ONE, READ)
        with edit() as changes:
            end_early(changes, "decoder", 1, 2)
            found = model(ONE, READ)
        with edit() as changes:
            end_early(changes, "decoder", 2, 2)
            assert torch.equal(model(ONE, READ), plain)
        state = recorded(trace, LayerId("decoder", 0, "state"))
        torch.testing.assert_close(found, model.output(model.decoder.norm(state)))


def test_counterfactual_maps() -> None:
    """Rows still sum to 1, hidden keys stay hidden, and the largest weight is gone or elsewhere."""
    weights = torch.tensor([[[[0.5, 0.3, 0.2, 0.0], [1.0, 0.0, 0.0, 0.0]]]])
    torch.testing.assert_close(uniform(weights)[0, 0, 0], torch.tensor([1 / 3] * 3 + [0]))
    rest = without_largest(weights)[0, 0]
    torch.testing.assert_close(rest[0], torch.tensor([0, 0.6, 0.4, 0]))
    assert rest[1].sum() == 0  # there was nothing else
    found = {tuple(permuted(weights, seed)[0, 0, 0].tolist()) for seed in range(30)}
    assert len(found) == 6
    assert {tuple(sorted(each)) for each in found} == {tuple(sorted(weights[0, 0, 0].tolist()))}
    assert all(each[3] == 0 for each in found)


def test_recurrent_models_are_patched_at_their_layers() -> None:
    model = randomise(build(SEQ2SEQS["seq2seq-lstm-attention"])).eval()

    def run(source: Tensor) -> Callable[[int], Tensor]:
        return lambda rows: F.log_softmax(
            model(source.expand(rows, -1), READ.expand(rows, -1))[:, -1], dim=-1
        )[:, 4]

    with torch.no_grad(), record(states=True) as trace:
        end = run(OTHER)(1)
    assert LayerId("decoder", 0, "cross head") in head_sites(trace)
    found = patch_states(run(ONE), trace, "encoder", 1, LINKS)
    whole = patch_states(run(ONE), trace, "encoder", 1, [(range(4), range(4))])
    assert float(whole[0, 0]) == pytest.approx(float(end), abs=1e-5)
    assert found.shape == (2, 4)
