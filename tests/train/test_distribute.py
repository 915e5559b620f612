"""Several processes that train one model make the updates that one process makes."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from manyheads.errors import TrainingError
from manyheads.train.distribute import RankTask, summed, unwrapped, whole
from tests.train.cases import CASES, STEPS, WAYS
from tests.train.started import run_ranks, stored
from tests.train.toy import Plane, config, network, run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of two ranks, and of one process alone."""
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks("curves", 2, folder)
    run_ranks("curves", 1, folder)
    return folder


def losses(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def validation(folder: Path) -> dict[str, Any]:
    last: dict[str, Any] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return last


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_two_ranks_are_one_process(trained: Path, case: str, way: str) -> None:
    """The same losses, gradients, weights and validation, whatever wraps the model."""
    one, two = trained / f"{case}-alone", trained / f"{case}-{way}"
    assert len(losses(one)) == STEPS
    assert losses(two) == pytest.approx(losses(one), rel=1e-5)
    assert_close(stored(two), stored(one))
    assert validation(two) == pytest.approx(validation(one), rel=1e-5)


def assert_close(ours: dict[str, Tensor], theirs: dict[str, Tensor], steps: int = STEPS) -> None:
    """Weights agree within 1e-4, moments of the optimizer within 1e-7."""
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        moment = name.startswith("optimizer/")
        tolerance = torch.full_like(tensor, 1e-7 if moment else 1e-4)
        if not moment and name.endswith("qkv.bias"):
            # A bias of keys changes no softmax: its gradient is rounding alone, which Adam
            # divides by its size. A step moves it by 1e-3 at most, to either side.
            tolerance.chunk(3)[1].fill_(2 * steps * 1e-3)
        assert ((ours[name] - tensor).abs() <= tolerance).all(), name


@pytest.mark.full
@pytest.mark.parametrize("world", [2, 4])
def test_two_hundred_steps(world: int, tmp_path: Path) -> None:
    """The same curve, and the same weights at its end."""
    how = {"steps": 200, "save_every": 200, "validate_every": 200}
    for ranks in (1, world):
        run_ranks("curves", ranks, tmp_path, config=how, cases=["text", "image"])
    for case in ("text", "image"):
        one = tmp_path / f"{case}-alone"
        for way in WAYS:
            several = tmp_path / f"{case}-{way}"
            assert len(losses(several)) == 200
            assert losses(several) == pytest.approx(losses(one), rel=1e-5)
            weights, theirs = stored(several), stored(one)
            names = [name for name in theirs if name.startswith("model/")]
            assert_close({n: weights[n] for n in names}, {n: theirs[n] for n in names}, steps=200)


@pytest.mark.parametrize("case", CASES)
def test_some_batches_are_too_small_for_two(case: str) -> None:
    """Within the updates of the runs above, which so take stand-ins too."""
    _, task, _ = CASES[case]()
    assert 0 in map(len, task.plan(0, 1, 2)[:6])
    assert 0 not in map(len, task.plan(0, 0, 2))


def test_a_rank_without_an_example_counts_nothing() -> None:
    """Five points in batches of two: the third has none for rank 1, which takes one it has had.

    Also when a run is resumed there.
    """
    task = RankTask(Plane(points=5, batch_size=2), 1, 2)
    plan = task.plan(0)
    assert [len(part) for part in plan] == [1, 1, 0]
    *_, last = task.load(0, plan)
    (resumed,) = task.load(0, plan[2:])
    for batch in (last, resumed):
        assert batch.indices.tolist() == plan[0].tolist()
        assert batch.units == 0
        model = network(dropout=0)
        loss = task.loss(model, batch)
        assert (loss.sum.item(), loss.weight, loss.logs) == (0.0, 0.0, {"distance": 0.0})
        loss.sum.backward()
        assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


def test_more_ranks_than_examples_in_a_batch() -> None:
    task = RankTask(Plane(points=5, batch_size=2), 2, 3)
    with pytest.raises(TrainingError, match="Rank 2 of 3 has nothing to train on"):
        next(task.load(0, task.plan(0)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, on importing dynamo
def test_a_wrapped_model_is_stored_under_plain_names(tmp_path: Path) -> None:
    """Also by the averages and the optimizer; and it learns bitwise the same."""
    runs = []
    for name, model in (
        ("plain", network()),
        ("compiled", torch.compile(network(), backend="eager")),
    ):
        kept: list[nn.Module] = []
        assert isinstance(model, nn.Module)
        run(
            tmp_path / name,
            Plane(),
            config(ema=0.9, save_every=12),
            model=model,
            save_best=kept.append,
        )
        assert not any(isinstance(each, type(torch.compile(nn.Identity()))) for each in kept)
        runs.append(stored(tmp_path / name))
    plain, compiled = runs
    assert plain.keys() == compiled.keys()
    assert all(torch.equal(plain[name], compiled[name]) for name in plain)


def test_a_model_is_found_inside_all_its_wrappers() -> None:
    """A model whose parts happen to have a wrapper's name is not one: it has other parts too."""
    model = network()
    assert unwrapped(model) is model
    assert unwrapped(nn.ModuleDict({"module": nn.ModuleDict({"_orig_mod": model})})) is model
    own = nn.ModuleDict({"module": model, "head": nn.Identity()})
    assert unwrapped(own) is own


def test_without_a_group_there_is_one_rank() -> None:
    """Nothing is added up, rounded or gathered."""
    assert summed([0.1, 3], torch.device("cpu")) == [0.1, 3]
    x = torch.ones(2)
    assert whole(x) is x
