"""ONNX of causal language models: one graph with a cache, behind every search."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor

from manyheads.asks.export_request import ParityRequest
from manyheads.decode.sampling import Sampling
from manyheads.engines.onnx.graph_models import ContinueModel
from manyheads.errors import UsageError
from manyheads.measure.stored_model import evaluate
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.tasks.generate.predictor import Generator
from manyheads.tasks.generate.task import Completion
from tests import language
from tests.exports import exported, exported_language

# Several of one length, and none of the export's two.
PROMPTS = ["eins", "zwei", "drei", "", "vier fünf sechs", "acht neun zehn eins zwei"]


@pytest.fixture(scope="module")
def generators() -> tuple[Generator, Generator]:
    """A language model on torch and on ONNX Runtime."""
    return exported_language("generate", Generator)


def same(found: Sequence[list[Completion]], expected: Sequence[list[Completion]]) -> None:
    assert [[each.tokens for each in best] for best in found] == [
        [each.tokens for each in best] for best in expected
    ]
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.log_probability == pytest.approx(b.log_probability, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beams": 4, "n_best": 3},
        {"sampling": Sampling(temperature=1.3, top_k=20), "n_best": 3, "seed": 5},
    ],
    ids=["greedy", "beams", "sampling"],
)
def test_every_search_runs_on_it(
    generators: tuple[Generator, Generator], options: dict[str, Any]
) -> None:
    ours, theirs = generators
    for prompts in (PROMPTS, PROMPTS[:1], PROMPTS[3:4]):
        found, expected = (each.complete(prompts, tokens=12, **options) for each in (theirs, ours))
        same(found, expected)


def test_texts_are_scored_and_measured(generators: tuple[Generator, Generator]) -> None:
    ours, theirs = generators
    for one, other in zip(ours.score(PROMPTS), theirs.score(PROMPTS), strict=True):
        assert [each.piece for each in one] == [each.piece for each in other]
        for a, b in zip(one, other, strict=True):
            assert a.log_probability == pytest.approx(b.log_probability, abs=1e-3)
    first, second = (evaluate(each)["all"] for each in generators)
    for name, each in first.items():
        assert second[name]["value"] == pytest.approx(each["value"], rel=1e-3)


def test_the_report_and_the_graph(generators: tuple[Generator, Generator]) -> None:
    path = generators[1].folder.path / "engines" / "onnx"
    report = json.loads((path / "parity.json").read_text())
    assert report["difference"] < 1e-4
    assert (report["metric"], report["changed"], report["inputs"]) == ("accuracy", 0, 8)
    graph = onnx.load(path / "decoder.onnx").graph
    shapes = {
        each.name: [axis.dim_param or axis.dim_value for axis in each.type.tensor_type.shape.dim]
        for each in graph.input
    }
    assert shapes["tokens"] == ["texts", "tokens"]
    assert shapes["positions"] == ["positions"]
    assert shapes["past_keys_0"] == ["texts", 2, "past", 8]


def test_steps_give_what_whole_texts_give(generators: tuple[Generator, Generator]) -> None:
    """Of three texts with two beams each, beams and texts taken along as in a search."""
    model: Any = generators[1].model
    tokens = torch.randint(4, 200, (3, 7), generator=torch.Generator().manual_seed(1))
    state = model.start(tokens[:, :4], 2, 3)
    scores, state = model.step(tokens[:, :1].expand(3, 2), state)
    state = model.keep(state, torch.tensor([2, 0]))
    state = model.reorder(state, torch.tensor([[1, 1], [0, 1]]))
    for n in (4, 5, 6):
        scores, state = model.step(tokens[[2, 0], n, None].expand(2, 2), state)
    expected = model(tokens[[2, 0]])[:, -1].log_softmax(dim=-1)
    torch.testing.assert_close(scores, expected[:, None].expand_as(scores), atol=1e-4, rtol=1e-4)


def test_the_gate_notices_a_wrong_cache(
    generators: tuple[Generator, Generator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole lines, which need none, are right all the same."""
    read = ContinueModel._read

    def forget(
        self: ContinueModel, tokens: Tensor, places: Tensor, past: Sequence[Tensor]
    ) -> list[Tensor]:
        return read(self, tokens, places, [torch.zeros_like(each) for each in past])

    pipeline = pipeline_of(generators[0].folder.recipe)
    assert not list(pipeline.parity(*generators, ParityRequest()).failures("float32"))
    monkeypatch.setattr(ContinueModel, "_read", forget)
    (failure,) = pipeline.parity(*generators, ParityRequest()).failures("float32")
    assert "logits differ by up to" in failure


def test_bad_input(generators: tuple[Generator, Generator]) -> None:
    model: Any = generators[1].model
    most = model.files["decoder"].limits["tokens"]
    with pytest.raises(UsageError, match=f"has {most + 1} on the axis 'tokens'"):
        model(torch.full((1, most + 1), 5))
    state = model.start(torch.full((1, most), 5), 1, 4)
    _, state = model.step(torch.full((1, 1), 5), state)
    with pytest.raises(UsageError, match=f"the exported graph ends at {most}"):
        model.step(torch.full((1, 1), 5), state)
    with pytest.raises(UsageError, match="the same number of tokens"):
        model.start(torch.tensor([[1, 5], [1, 0]]), 1, 4)
    with pytest.raises(UsageError, match="`engine='torch'`"):
        model(torch.full((1, 2), 5), None, None)


@pytest.mark.full  # as of a classifier
def test_one_file(tmp_path: Path) -> None:
    path = tmp_path / "words.onnx"
    done = exported(language.trained("generate"), "--to", "onnx", "--out", path, "--text", "eins")
    assert done.returncode == 0, done.stderr
    assert path.is_file()
    report = json.loads((tmp_path / "words.parity.json").read_text())
    assert report["metric"] is None
