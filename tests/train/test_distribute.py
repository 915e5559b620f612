"""Two processes that train one model make the updates that one process makes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from manyheads.errors import TrainingError
from manyheads.train.distribute import RankTask, summed, unwrapped, whole
from tests.train.ranks import CASES, WRAPPED
from tests.train.toy import Plane, config, network, run

ROOT = Path(__file__).parents[2]
SECONDS = 120  # after which no process is left


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folders of rank 0 and 1 of two, and of one process alone."""
    folder = tmp_path_factory.mktemp("ranks")
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.train.ranks", str(rank), str(world), str(folder)],
            cwd=ROOT,
            env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, world in ((0, 2), (1, 2), (0, 1))
    ]
    try:
        for process in started:
            _, errors = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, errors
        yield folder
    finally:
        for process in started:
            process.kill()
            process.wait()


def losses(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def validation(folder: Path) -> dict[str, Any]:
    last: dict[str, Any] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return last


def stored(folder: Path, what: str) -> dict[str, Tensor]:
    (path,) = (folder / "state").glob(f"step-*/{what}.safetensors")
    return load_file(path)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize("case", CASES)
def test_two_ranks_are_one_process(trained: Path, case: str, wrapper: str, rank: int) -> None:
    """The same losses, gradients, weights and validation, whatever wraps the model."""
    two, one = trained / f"{case}-{wrapper}-{rank}", trained / f"{case}-alone-0"
    assert len(losses(one)) == 6
    assert losses(two) == pytest.approx(losses(one), rel=1e-5)
    for what, apart in (("optimizer", 1e-7), ("model", 1e-4), ("average", 1e-4)):
        ours, theirs = stored(two, what), stored(one, what)
        assert ours.keys() == theirs.keys()
        for name, tensor in theirs.items():
            tolerance = torch.full_like(tensor, apart)
            if what != "optimizer" and name.endswith("qkv.bias"):
                # A bias of keys changes no softmax: its gradient is rounding alone, which Adam
                # divides by its size. Six steps move it by 6e-3 at most, to either side.
                tolerance.chunk(3)[1].fill_(2 * 6e-3)
            assert ((ours[name] - tensor).abs() <= tolerance).all(), (what, name)
    assert validation(two) == pytest.approx(validation(one), rel=1e-5)


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
        runs.append([stored(tmp_path / name, w) for w in ("model", "optimizer", "average")])
    for plain, compiled in zip(*runs, strict=True):
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
