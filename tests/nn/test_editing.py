"""Edits of a forward pass: exact where exactness can be computed by hand, and never silent."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.decode.step import Hypothesis
from manyheads.errors import UsageError
from manyheads.models.presets import PRESETS, build
from manyheads.models.transformer import Transformer
from manyheads.nn.attention.softmax import EditedRecord
from manyheads.nn.editing.edits import Edit, edit, recorded
from manyheads.nn.recording.trace import LayerId, record
from tests.small import ALL, TRANSFORMERS, VITS, answer, inputs, randomise

ONE = torch.tensor([[5, 6, 7, 2]])
OTHER = torch.tensor([[5, 9, 4, 2]])
TARGET = torch.tensor([[1, 3, 4, 8]])
NAMES = ["transformer-base", "transformer-tiny"]


def translator(name: str = "transformer-base") -> Transformer:
    model = randomise(build(TRANSFORMERS[name])).eval()
    assert isinstance(model, Transformer)
    return model


def search(model: Transformer, sources: Tensor, beams: int = 1) -> list[Hypothesis]:
    """The best output of each sentence."""
    limits, start, end = [6] * len(sources), model.config.start, model.config.end
    if beams == 1:
        return greedy_search(model, sources, limits, start=start, end=end)
    found = beam_search(model, sources, limits, beams=beams, start=start, end=end)
    return [each[0] for each in found]


VIEWS = {torch.ops.aten.unsqueeze.default, torch.ops.aten.select.int}


class Operators(TorchDispatchMode):
    """Lists every operator that computes something."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if func not in VIEWS:
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", PRESETS)
def test_an_empty_edit_changes_nothing(name: str) -> None:
    """Bitwise equal answers from the same operators, with an empty edit and recorded states."""
    model, given = randomise(build(ALL[name])).eval(), inputs(ALL[name])
    with torch.no_grad():
        with Operators() as plain:
            expected = answer(model, given)
        with edit(), Operators() as edited:
            found = answer(model, given)
        with record(states=True):
            seen = answer(model, given)
    assert edited.names == plain.names
    assert torch.equal(found, expected)
    assert torch.equal(seen, expected)


@pytest.mark.parametrize("name", ["transformer-base", "vit-b"])
def test_without_an_edit_no_site_is_visited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check in front of each site is all that a plain pass costs."""
    model, given = randomise(build(ALL[name])).eval(), inputs(ALL[name])

    def refuse(*_: object, **__: object) -> Tensor:
        raise AssertionError("a site was visited")

    for module in ("attention.attention", "blocks.block", "layers.residual", "rnn"):
        monkeypatch.setattr(f"manyheads.nn.{module}.visit", refuse)
    with torch.no_grad(), record():
        answer(model, given)
    with pytest.raises(AssertionError, match="visited"), torch.no_grad(), edit():
        answer(model, given)


@pytest.mark.parametrize("beams", [1, 3])
def test_an_empty_edit_changes_no_search(beams: int) -> None:
    model, sources = translator(), torch.cat([ONE, OTHER])
    plain = search(model, sources, beams)
    with edit():
        assert search(model, sources, beams) == plain


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_encoder_states_of_another_sentence_give_its_logits(layer: int) -> None:
    """All states of any layer, exactly; and the two sentences differ."""
    model = translator()
    with torch.no_grad():
        with record(states=True) as trace:
            expected = model(OTHER, TARGET)
        plain = model(ONE, TARGET)
        with edit() as changes:
            changes.state("encoder", layer).replace(trace)
            found = model(ONE, TARGET)
    assert torch.equal(found, expected)
    assert not torch.allclose(plain, expected, atol=1e-3)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_decoder_states_together_with_the_encoders(layer: int) -> None:
    model, other = translator(), torch.tensor([[1, 7, 4, 9]])
    with torch.no_grad():
        with record(states=True) as trace:
            expected = model(OTHER, other)
        with edit() as changes:
            changes.state("encoder", 2).replace(trace)
            changes.state("decoder", layer).replace(trace)
            found = model(ONE, TARGET)
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("stack", "kind"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]
)
@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("head", [1, 2])
def test_a_head_without_output_is_a_projection_without_its_columns(
    stack: str, kind: str, layer: int, head: int
) -> None:
    model = translator()
    with torch.no_grad():
        with edit() as changes:
            changes.head(stack, layer, kind, head).zero()
            found = model(ONE, TARGET)
        block = getattr(model, stack).blocks[layer - 1]
        attention = block.cross if kind == "cross" else block.attention
        size = attention.out.in_features // attention.heads
        attention.out.weight[:, (head - 1) * size : head * size] = 0
        torch.testing.assert_close(found, model(ONE, TARGET), atol=1e-6, rtol=1e-5)


def test_a_uniform_map_is_the_mean_of_the_values() -> None:
    """By hand: the head's output is then the same for every query."""
    model = translator()
    with torch.no_grad(), record(states=True) as trace, edit() as changes:
        changes.attention("decoder", 1, "cross").pattern(lambda w: torch.full_like(w, 0.25))
        model(ONE, TARGET)
    v = recorded(trace, LayerId("decoder", 0, "cross v"))
    out = recorded(trace, LayerId("decoder", 0, "cross head"))
    torch.testing.assert_close(out, v.mean(dim=2, keepdim=True).expand_as(out))
    shown = [each for each in trace if isinstance(each, EditedRecord)]
    assert [each.weights().unique().tolist() for each in shown] == [[0.25]]


def test_added_parts_are_what_the_stream_grows_by() -> None:
    """Pre-norm: state l + 1 = state l + attention + feed-forward; zeros leave the stream."""
    model, given = randomise(build(VITS["vit-b"])).eval(), inputs(VITS["vit-b"])
    with torch.no_grad(), record(states=True) as trace, edit() as changes:
        changes.added("encoder", 2, "attention").zero()
        changes.added("encoder", 2, "feedforward").zero()
        model(*given)
    state = [recorded(trace, LayerId("encoder", layer, "state")) for layer in (-1, 0, 1)]
    parts = [
        recorded(trace, LayerId("encoder", 0, f"added {part}"))
        for part in ("attention", "feedforward")
    ]
    torch.testing.assert_close(state[1], state[0] + parts[0] + parts[1])
    assert torch.equal(state[2], state[1])


def test_one_token_of_one_row() -> None:
    model = translator()
    both = torch.cat([ONE, OTHER])
    with torch.no_grad():
        with record(states=True) as plain:
            model(both, TARGET.expand(2, -1))
        with record(states=True) as trace, edit() as changes:
            changes.state("encoder", 1, tokens=[2], row=1).add(torch.ones(8))
            model(both, TARGET.expand(2, -1))
    site = LayerId("encoder", 0, "state")
    change = recorded(trace, site) - recorded(plain, site)
    expected = torch.zeros(2, 4, 8)
    expected[1, 2] = 1
    torch.testing.assert_close(change, expected)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_search_edits_the_token_of_each_step(beams: int) -> None:
    """What a search computes step by step is what teacher forcing computes at once."""
    model, vector = translator(), torch.linspace(-3, 3, 8)

    def edits(changes: Edit) -> None:
        changes.state("decoder", 1, tokens=[1, 2]).add(vector)
        changes.head("decoder", 2, "cross", 1, tokens=[1]).zero()
        changes.attention("decoder", 2, "self", 2).pattern(lambda w: w / w.norm(dim=-1)[..., None])

    with torch.no_grad(), edit() as changes:
        edits(changes)
        (best,) = search(model, ONE, beams)
    ids = torch.tensor([[model.config.start, *best.tokens]])
    with torch.no_grad(), edit() as changes:
        edits(changes)
        logs = model(ONE, ids).log_softmax(dim=-1)[0]
    wanted = [*best.tokens, model.config.end][: len(best.token_log_probabilities)]
    expected = [float(logs[at, token]) for at, token in enumerate(wanted)]
    assert best.token_log_probabilities == pytest.approx(expected, abs=1e-4)


def test_a_row_of_a_search_stays_that_row_when_others_are_done() -> None:
    """A sentence ends, the other goes on with its own edit."""
    model = translator()
    sources = torch.cat([ONE, OTHER, ONE])
    with edit() as changes:
        changes.state("decoder", 1, row=1).add(10 * torch.linspace(-1, 1, 8))
        found = [each.tokens for each in search(model, sources, 2)]
    with edit() as changes:
        changes.state("decoder", 1).add(10 * torch.linspace(-1, 1, 8))
        changed = search(model, OTHER, 2)[0].tokens
    plain = search(model, ONE, 2)[0].tokens
    assert found == [plain, changed, plain]


def test_edits_nest_from_the_outside_in() -> None:
    model = translator()
    with torch.no_grad(), edit() as outer, edit() as inner, record(states=True) as trace:
        outer.state("encoder", 2).zero()
        inner.state("encoder", 2).add(torch.ones(8))
        model(ONE, TARGET)
    assert recorded(trace, LayerId("encoder", 1, "state")).unique().tolist() == [1.0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda e: e.head("decoder", 9, "cross", 2).zero(), "did you mean 'decoder layer 2 cross"),
        (lambda e: e.head("decoder", 1, "crss", 2).zero(), "'decoder layer 1 cross head 2'"),
        (lambda e: e.head("encodr", 1, "self", 2).zero(), "'encoder layer 1 self head 2'"),
        (lambda e: e.head("encoder", 1, "self", 3).zero(), "heads are 1 to 2"),
        (lambda e: e.state("encoder", 1, tokens=[4]).zero(), "tokens 0 to 3"),
        (lambda e: e.state("encoder", 1, row=1).zero(), "no row 1"),
        (lambda e: e.state("encoder", 1).replace(torch.ones(7)), r"\(7,\).*\(1, 4, 8\)"),
        (lambda e: e.state("encoder", 1).replace(torch.ones(3, 8)), "tokens 0 to 2"),
        (
            lambda e: e.attention("encoder", 1, "self").pattern(lambda w: w[..., 1:]),
            r"4, 3\).*4, 4\)",
        ),
        (lambda e: e.added("encoder", 1, "nothing").zero(), "attention, cross, feedforward"),
        (lambda e: e.state("encoder", -1).zero(), "layer is -1"),
        (lambda e: e.site("encoder 1").zero(), "no name of a site"),
        (lambda e: e.site("decoder layer 2 cross head").zero(), "no name of a site"),
        (lambda e: e.site("decoder layer 2 cross hed 9").zero(), "'decoder layer 2 cross head 2'"),
        (lambda e: e.site("encoder layer 1 state 2").zero(), "state has no heads"),
        (lambda e: e.site("decoder layer 2 cross pattern 3").zero(), "patterns are 1 to 2"),
        (lambda e: e.state("encoder", 1), "encoder layer 1 state was chosen, and nothing is done"),
        (lambda e: e.attention("decoder", 1, "cross"), "decoder layer 1 cross was chosen"),
        (lambda e: e.state("encoder", 1, tokens=[1, 9], row=0).zero(), "there is no token 9"),
        (lambda e: e.state("encoder", 1, tokens=[9], row=0).zero(), r"no row 0 with the tokens"),
        (lambda e: e.state("encoder", 1, tokens=4).zero(), "there is no token 4"),
        (lambda e: e.state("encoder", 1, tokens=()).zero(), "at least one"),
        (lambda e: e.state("encoder", 1).mean([]), "a trace of record"),
        (lambda e: e.state("encoder", 1).replace(torch.ones(1, 4, 8), row=-1), "no row -1"),
        (
            lambda e: e.state("encoder", 1, tokens=[1]).replace(torch.ones(4, 8), tokens=[-1]),
            "indices from 0",
        ),
        (
            lambda e: e.attention("encoder", 1, "self").pattern(lambda w: w.mean(dim=1)),
            r"\(1, 4, 4\).*\(1, 2, 4, 4\) \(row, head, token, size\)",
        ),
        (
            lambda e: e.head("encoder", 1, "self", None).replace(torch.ones(2, 4, 4)),
            r"\(2, 4, 4\).*\(row, head, token, size\)",
        ),
        (lambda e: e.resume("encoder", 3, torch.zeros(1, 4, 8)), "layers 1 to 2"),
        (lambda e: e.resume("encoder", 1, torch.zeros(1, 3, 8)), r"\(1, 3, 8\)"),
    ],
)
def test_what_cannot_be_edited_is_refused(make: Callable[[Edit], None], said: str) -> None:
    """Never silently: a wrong name, a token or row that is not there, a wrong shape."""
    model = translator()

    def run() -> None:
        with torch.no_grad(), edit() as changes:
            make(changes)
            model(ONE, TARGET)

    with pytest.raises(UsageError, match=said):
        run()


def test_a_head_that_a_trace_does_not_have() -> None:
    model = translator()
    with torch.no_grad(), record(states=True) as trace:
        model(ONE, TARGET)
    with pytest.raises(UsageError, match=r"nothing at 'encoder layer 1 self head 3'.*1, 2, 4, 4"):
        recorded(trace, LayerId("encoder", 0, "self head"), 3)


def test_the_mean_of_all_heads_is_of_each_its_own() -> None:
    model = translator()
    with torch.no_grad(), record(states=True) as trace:
        model(ONE, TARGET)
    site = LayerId("encoder", 0, "self head")
    mean = recorded(trace, site).mean(dim=(0, 2))  # head size
    with torch.no_grad(), edit() as changes, record(states=True) as edited:
        changes.head("encoder", 1, "self", None).mean([trace, trace])
        model(ONE, TARGET)
    found = recorded(edited, site)
    torch.testing.assert_close(found, mean[None, :, None].expand_as(found))
    assert not torch.allclose(mean[0], mean[1])


def test_an_edit_around_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no model ran"), edit() as changes:
        changes.state("encoder", 1).zero()


def test_an_error_in_a_pass_is_not_hidden_by_the_check() -> None:
    def run() -> None:
        with edit() as changes:
            changes.state("encoder", 1).zero()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()


def test_names_are_read_back() -> None:
    model = translator()
    names = ["encoder layer 0 state", "decoder layer 2 cross head 1", "decoder layer 1 added cross"]
    with torch.no_grad():
        for name in names:
            with edit() as changes:
                changes.site(name).zero()
                assert changes.sites[0].name == name
                model(ONE, TARGET)


@pytest.mark.parametrize("layer", [1, 2])
def test_an_encoder_resumes_behind_a_layer(layer: int) -> None:
    """Bitwise the same answer, without the operators of the layers before; edits there go on."""
    model = translator()
    with torch.no_grad():
        with record(states=True) as trace, Operators() as plain:
            expected = model(ONE, TARGET)
        state = recorded(trace, LayerId("encoder", layer - 1, "state"))
        with edit() as changes, Operators() as resumed:
            changes.resume("encoder", layer, state)
            assert torch.equal(model(ONE, TARGET), expected)
        with edit() as changes:
            changes.resume("encoder", layer, state)
            changes.state("encoder", layer).zero()
            zeroed = model(ONE, TARGET)
        with edit() as changes:
            changes.state("encoder", layer).zero()
            assert torch.equal(model(ONE, TARGET), zeroed)
    assert len(resumed.names) < len(plain.names)


def test_what_does_not_resume_is_refused() -> None:
    model = translator()

    def run() -> None:
        with torch.no_grad(), edit() as changes:
            changes.resume("encodr", 1, torch.zeros(1, 4, 8))
            model(ONE, TARGET)

    with pytest.raises(UsageError, match="'encodr'"):
        run()
