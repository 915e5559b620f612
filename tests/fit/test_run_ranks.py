"""`torchrun ... -m manyheads train`: one run folder, and ranks that are stopped or lost."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from manyheads.fit.resumption import LAUNCH
from manyheads.train import checkpoint
from tests.made import (
    CLASSIFY,
    TRANSLATE,
    read_jsonl,
    run,
    write_halves,
    write_numbers,
    write_recipe,
)
from tests.remarks import remarks

SECONDS = 240
STEPS = 200
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A small translator without dropout, which differs from rank to rank."""
    write_numbers(tmp_path)
    text = TRANSLATE.replace("dropout = 0.1", "dropout = 0.0")
    text = text.replace("steps = 60", f"steps = {STEPS}").replace(
        "save_every = 20", "save_every = 5"
    )
    text = text.replace("validate_every = 30", f"validate_every = {STEPS}")
    return write_recipe(tmp_path / "recipe.toml", text, tmp_path)


@contextmanager
def torchrun(recipe: Path, out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start two ranks; no process remains."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *options]
    command += ["-m", "manyheads", "train", str(recipe), "--out", str(out)]
    with subprocess.Popen(
        command,
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as started:
        try:
            yield started
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


def rank(started: subprocess.Popen[str], number: int) -> int | None:
    """Find the process of a rank."""
    try:
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        for child in children:
            if f"\0RANK={number}\0" in Path(f"/proc/{child}/environ").read_text():
                return int(child)
    except OSError:
        pass
    return None


def new_rank(started: subprocess.Popen[str], number: int, before: set[int]) -> int | None:
    """Wait for a rank that is none of these; None if all has ended."""
    while started.poll() is None:
        if (process := rank(started, number)) and process not in before:
            return process
        time.sleep(0.02)
    return None


def saved(out: Path) -> int:
    """Return the step of the newest checkpoint."""
    progress = checkpoint.newest(out / "state")
    return 0 if progress is None else progress.step


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def assert_whole(out: Path, evaluations: int = 1) -> None:
    """Every step was logged once and in order, the model is there and was measured."""
    logged = [line["step"] for line in read_jsonl(out / "metrics.jsonl") if "loss" in line]
    assert logged == list(range(10, STEPS + 1, 10))
    assert saved(out) == STEPS
    assert (out / "manyheads.json").exists()
    assert len(read_jsonl(out / "evaluations.jsonl")) == evaluations
    assert not list(out.glob(".manyheads-*"))


@linux
def test_a_lost_rank_is_replaced(recipe: Path, tmp_path: Path) -> None:
    """kill -9, and torchrun starts again: without `--resume`, from the last checkpoint."""
    out = tmp_path / "run"
    with torchrun(recipe, out, "--max-restarts", "1") as started:
        wait_for(lambda: saved(out) >= 20)
        assert (out / LAUNCH).exists()
        os.kill(rank(started, 1) or 0, signal.SIGKILL)
        printed, _ = started.communicate(timeout=SECONDS)
    assert started.returncode == 0, printed
    # Rank 0 says so, unless torchrun ends it before it has noticed.
    assert "Rank 0 of 2 stops: rank 1 (process " in printed or "exitcode: -9" in printed
    assert printed.count("parameters, threads: 1, 2 ranks (ddp)") == 2
    assert printed.count(f"step {STEPS}: val_bleu") == 1
    assert_whole(out)


@pytest.mark.full  # tests/train/test_ranks.py does both without torchrun
@linux
def test_both_ranks_stop_and_one_process_goes_on(recipe: Path, tmp_path: Path) -> None:
    """SIGTERM to torchrun, as of a queue whose time is up."""
    out = tmp_path / "run"
    with torchrun(recipe, out) as started:
        wait_for(lambda: saved(out) >= 20)
        started.terminate()
        printed, _ = started.communicate(timeout=SECONDS)
    assert printed.count("Stopped after step") == 1
    assert "The state is saved in" in printed
    assert saved(out) < STEPS
    with remarks("ranks was 2, is 1"):
        run(recipe, out, resume=True)
    assert_whole(out)


@linux
def test_ranks_stop_when_torchrun_is_killed(recipe: Path, tmp_path: Path) -> None:
    """`kill -9` of torchrun itself: they save and end, and do not train on by themselves."""
    out = tmp_path / "run"
    with torchrun(recipe, out) as started:
        wait_for(lambda: saved(out) >= 20)
        started.kill()
        printed, _ = started.communicate(timeout=SECONDS)  # the ranks have ended, too
    assert printed.count("Stopped after step") == 1
    assert "The state is saved in" in printed
    assert saved(out) < STEPS


def test_a_rank_without_examples(tmp_path: Path) -> None:
    """Told before anything is written, so that the corrected command is given as it is."""
    out = tmp_path / "run"
    write_halves(tmp_path)
    text = re.sub("batch_size = .*", "batch_size = 1", CLASSIFY)
    recipe = write_recipe(tmp_path / "halves.toml", text, tmp_path)
    with torchrun(recipe, out) as started:
        printed, _ = started.communicate(timeout=SECONDS)
    assert printed.count("Rank 1 of 2 has nothing to train on: every batch has fewer") == 1
    assert [path.name for path in out.iterdir()] == [LAUNCH]


@pytest.mark.full
@linux
@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_five_lost_ranks(way: str, recipe: Path, tmp_path: Path) -> None:
    """At random times, also while a run is prepared or written."""
    out = tmp_path / "run"
    draw = random.Random(0)
    recipe.write_text(recipe.read_text() + f'parallel = "{way}"\n')
    with torchrun(recipe, out, "--max-restarts", "5") as started:
        killed: set[int] = set()
        for _ in range(5):
            process = new_rank(started, draw.randrange(2), killed)
            killed |= {each for number in (0, 1) if (each := rank(started, number))}
            time.sleep(draw.uniform(0, 12))
            if process:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        printed, _ = started.communicate(timeout=SECONDS)
    assert started.returncode == 0, printed
    assert_whole(out)
