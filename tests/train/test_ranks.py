"""Several processes that train one model stop, fail and go on together."""

import json
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.train import checkpoint
from manyheads.train.ranks import Launch, agreed, exchange, launch, on_first
from tests.train.started import run_ranks, stored
from tests.train.test_distribute import losses
from tests.train.toy import network


def seen(folder: Path) -> Counter[tuple[int, int]]:
    """Count how often each example of each epoch was loaded, by any rank of any number."""
    found: Counter[tuple[int, int]] = Counter()
    for path in folder.glob("seen-*"):
        for epoch, indices in map(json.loads, path.read_text().splitlines()):
            found.update((epoch, index) for index in indices)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    run_ranks("plane", 1, folder)
    return folder


FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        (1, 2, "fsdp"),
        pytest.param(2, 1, "ddp", marks=FULL),
        pytest.param(2, 4, "fsdp", marks=FULL),
        pytest.param(2, 4, "ddp", marks=FULL),
        pytest.param(2, 1, "fsdp", marks=FULL),
        pytest.param(4, 2, "ddp", marks=FULL),
    ],
)
def test_a_run_goes_on_with_another_number_of_ranks(
    before: int, after: int, way: str, alone: Path, tmp_path: Path
) -> None:
    """After SIGTERM to one rank in the second epoch: the same losses, and no example twice."""
    options: dict[str, Any] = {"config": {"parallel": way}}
    printed = run_ranks("plane", before, tmp_path, stop=before - 1, after=2, **options)
    assert printed == ["interrupted\n"] * before
    half = losses(tmp_path / "run")
    assert 2 <= len(half) <= 3  # all stop behind the update in which they hear of it
    run_ranks("plane", after, tmp_path, **options)
    assert losses(tmp_path / "run") == pytest.approx(losses(alone / "run"), rel=1e-5)
    assert seen(tmp_path) == seen(alone)
    assert set(seen(alone).values()) == {1}
    if after > 1:
        model = network(dropout=0)
        checkpoint.read_model(checkpoint.checkpoints(tmp_path / "run" / "state"), model)
        weights = stored(tmp_path / "run")
        assert all(torch.equal(weights[f"model/{n}"], p) for n, p in model.named_parameters())
    ours, theirs = stored(tmp_path / "run"), stored(alone / "run")
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].sub(tensor).abs().max() < 1e-4, name


def test_a_logged_loss_is_the_mean_of_all_steps_since_the_line_before(
    alone: Path, tmp_path: Path
) -> None:
    """Also of those before a stop, which were made by two ranks."""
    options: dict[str, Any] = {"config": {"log_every": 12}}
    run_ranks("plane", 2, tmp_path, stop=1, after=2, **options)
    run_ranks("plane", 1, tmp_path, **options)
    mean = fmean(losses(alone / "run"))
    assert losses(tmp_path / "run") == pytest.approx([mean], rel=1e-5)


def test_an_infinite_loss_of_one_rank_is_one_of_all(tmp_path: Path) -> None:
    """All say the same examples, those of rank 1; nothing was updated with them."""
    first, second = run_ranks("broken", 2, tmp_path, how="infinite")
    assert first == second
    assert first.startswith("NonFiniteLossError: The loss is inf at step 3, in the batch of points")
    *_, line = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert line == {"step": 3, "epoch": 0, "non_finite": 1}


def test_a_rank_that_is_killed_is_named(tmp_path: Path) -> None:
    """By those that remain; the last state is there to go on from."""
    first, _ = run_ranks("broken", 2, tmp_path, how="killed", killed=1)
    assert first.startswith("LostRankError: Rank 0 of 2 stops: rank 1 (process ")
    assert "has ended" in first
    assert stored(tmp_path / "run")


def test_progress_that_cannot_be_shown_stops_all(tmp_path: Path) -> None:
    """Only rank 0 shows it; the others hear of it in the next update."""
    first, second = run_ranks("broken", 2, tmp_path, how="unseen")
    assert first.startswith("InterruptedRunError: Stopped after step 3 of ")
    assert "progress could not be shown (BrokenPipeError)" in first
    assert second.startswith("InterruptedRunError: Stopped after step 3 of ")


def test_ranks_agree(tmp_path: Path) -> None:
    """Rank 0 works as if alone; an error of one ends all, and rank 0 names the rank."""
    first, second = (each.splitlines() for each in run_ranks("agreement", 2, tmp_path))
    assert first[0] == second[0] == "[[0, 1], [0, 1]]"
    assert first[1] == "UsageError 2: wrong"
    assert second[1] == "OtherRankError 2: wrong"
    assert first[2].startswith("TrainingError 1: Rank 1 of 2 on ")
    assert first[2].endswith(": wrong")
    assert second[2] == "OtherRankError 2: wrong"
    assert first[3] == "IndexError: list index out of range"
    assert second[3] == "OtherRankError: list index out of range"


def test_one_process_agrees_with_itself() -> None:
    assert exchange(3) == [3]
    assert on_first(lambda: 4) == 4
    with pytest.raises(UsageError), agreed():
        raise UsageError("wrong")


def test_what_torchrun_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there is one process; half of it is a mistake that is explained."""
    assert launch() == Launch()
    assert Launch().first
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="WORLD_SIZE is 2, but RANK, LOCAL_RANK, MASTER_ADDR"):
        launch()
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "1")
    assert launch() == Launch(rank=1, world=2, local_rank=1, local_world=2)
    assert not launch().first


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("WORLD_SIZE", "abc", "1 to 1000000"),
        ("WORLD_SIZE", "0", "1 to 1000000"),
        ("WORLD_SIZE", "9" * 5000, "1 to 1000000"),
        ("RANK", "x", "0 to 1"),
        ("RANK", "2", "0 to 1"),
        ("RANK", "-1", "0 to 1"),
        ("LOCAL_RANK", "1", "0 to 0"),
        ("LOCAL_WORLD_SIZE", "3", "1 to 2"),
        ("MASTER_PORT", "abc", "1 to 65535"),
        ("MASTER_PORT", "65536", "1 to 65535"),
    ],
)
def test_what_torchrun_does_not_say(
    name: str, given: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that cannot be are named, before a process waits for others."""
    good = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    for each, value in (good | {"MASTER_ADDR": "localhost", "MASTER_PORT": "1"}).items():
        monkeypatch.setenv(each, value)
    assert launch() == Launch(rank=1, world=2, local_rank=0, local_world=1)
    monkeypatch.setenv(name, given)
    with pytest.raises(UsageError, match=f"{name} is '{given:.20}.* from {allowed}"):
        launch()
