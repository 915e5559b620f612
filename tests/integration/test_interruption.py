"""kill -9 at any moment, resume: the final weights are those of the uninterrupted run, bit by bit.

Each run is a process of its own, as users start it. The uninterrupted one is timed; the other is
killed at random moments spread over it, between checkpoints and while one is written, and resumed
with the same command until it is through.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.made import CLASSIFY, TRANSLATE, read_jsonl, write_halves, write_numbers, write_recipe

SAVE_EVERY = 3
PATIENCE = 300.0  # seconds for a start-up or the whole of a tiny run, on a busy machine


class Trainer:
    """A run folder, and processes that train in it."""

    def __init__(self, recipe: Path, out: Path, steps: int) -> None:
        self.out = out
        self.last = f"step-{steps:09d}"
        self.log = out.with_suffix(".log")
        self.command = [
            *(sys.executable, "-m", "manyheads", "train", str(recipe), "--out", str(out)),
            *(f"train.steps={steps}", f"train.save_every={SAVE_EVERY}", "train.validate_every=50"),
        ]

    def start(self, *, resume: bool) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*self.command, *(["--resume"] if resume else [])],
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdout=log,
                stderr=log,
            )

    def checkpoints(self) -> list[str]:
        return sorted(path.name for path in (self.out / "state").glob("step-*"))

    def wait_until(self, process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> bool:
        """Wait for something to be saved; False if the process has ended without."""
        end = time.monotonic() + PATIENCE
        while not ready():
            if process.poll() is not None:
                return False
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.002)
        return True

    def finish(self, *, resume: bool) -> float:
        """Train to the end; return the seconds between the first and the last checkpoint."""
        process = self.start(resume=resume)
        self.wait_until(process, lambda: bool(self.checkpoints()))
        began = time.monotonic()
        self.wait_until(process, lambda: self.checkpoints()[-1] == self.last)
        seconds = time.monotonic() - began
        assert process.wait(PATIENCE) == 0, self.log.read_text()
        return seconds

    def kill(self, *, resume: bool, step: int, after: float) -> bool:
        """Train on until some time after a checkpoint; False if the run was through before."""
        before = self.checkpoints()[-1:]
        process = self.start(resume=resume)

        def trained_on() -> bool:
            newest = self.checkpoints()[-1:]
            return newest != before and newest >= [f"step-{step:09d}"]

        if self.wait_until(process, trained_on):
            time.sleep(after)
        process.send_signal(signal.SIGKILL)
        return process.wait(PATIENCE) == -signal.SIGKILL and self.checkpoints()[-1] != self.last

    def kill_in_start_up(self, *, after: float) -> None:
        """Kill while data are read and nothing, or nothing new, is saved."""
        process = self.start(resume=True)
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)


def recipe(kind: str, folder: Path) -> Path:
    if kind == "translate":
        write_numbers(folder, train=150)
        return write_recipe(folder / "recipe.toml", TRANSLATE, folder)
    write_halves(folder)
    return write_recipe(folder / "recipe.toml", CLASSIFY, folder)


def interrupt(kind: str, folder: Path, *, kills: int, steps: int) -> None:
    """Train with and without kills, and compare."""
    path = recipe(kind, folder)
    whole = Trainer(path, folder / "whole", steps)
    cut = Trainer(path, folder / "cut", steps)
    seconds = whole.finish(resume=False)
    chance = random.Random(kills)
    share = 0.8 * steps / kills  # the last fifth is left, for a machine that has become faster
    landed, within_an_epoch = 0, 0
    for number in range(kills):
        step = int(share * (number + chance.random()))
        after = chance.uniform(0, 2 * SAVE_EVERY * seconds / steps)  # up to two checkpoints later
        if not cut.kill(resume=number > 0, step=step, after=after):
            break
        landed += 1
        newest = cut.out / "state" / cut.checkpoints()[-1] / "progress.json"
        progress = json.loads(newest.read_text())["progress"]
        within_an_epoch += progress["index"] > 0
        if number % 4 == 3:
            cut.kill_in_start_up(after=chance.uniform(0, 1.5))
    assert landed > kills / 2
    assert within_an_epoch > 0
    cut.finish(resume=True)
    for name in ("recipe.toml", "model.safetensors"):
        assert (cut.out / name).read_bytes() == (whole.out / name).read_bytes(), name
    moments = f"state/{whole.last}/optimizer.safetensors"
    assert (cut.out / moments).read_bytes() == (whole.out / moments).read_bytes()
    lines = [
        [
            (line["step"], line["epoch"], "loss" in line)
            for line in read_jsonl(out / "metrics.jsonl")
        ]
        for out in (whole.out, cut.out)
    ]
    assert lines[0] == lines[1]
    assert "Traceback" not in cut.log.read_text()
    assert "other conditions" not in cut.log.read_text()


@pytest.mark.parametrize("kind", ["translate", pytest.param("classify", marks=pytest.mark.full)])
def test_two_kills(kind: str, tmp_path: Path) -> None:
    """Some seconds of training, killed twice."""
    interrupt(kind, tmp_path, kills=2, steps=100)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["translate", "classify"])
def test_ten_kills(kind: str, tmp_path: Path) -> None:
    """A longer run, killed ten times in training and twice more in start-up."""
    interrupt(kind, tmp_path, kills=10, steps=1200)
