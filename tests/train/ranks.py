"""A program that trains small models on several ranks, or one: see test_distribute.py.

    python -m tests.train.ranks JOB WORLD FOLDER OPTIONS-AS-JSON

With a world of 1 the models are not wrapped. Without jaxtyping's hook, which does not know the
tensors that FSDP2 puts in the place of parameters.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from manyheads.errors import InterruptedRunError, ManyheadsError, UsageError
from manyheads.train.loop import Observer, fit
from manyheads.train.model_wrapping import prepare
from manyheads.train.ranks import agreed, exchange, on_first, rank_and_world
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Indices
from tests.made import Silent
from tests.train.toy import Plane, Points, network
from tests.train.toy import config as of_plane

SILENT = Silent()


class Watched(Plane):
    """Writes down which examples it loads, and stops its rank after some batches."""

    def __init__(self, seen: Path, stop_after: int | None) -> None:
        super().__init__(points=40, batch_size=8)
        self.file = seen
        self.stop_after = stop_after

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[Points]:
        for number, batch in enumerate(super().load(epoch, batches), 1):
            with self.file.open("a") as file:
                file.write(json.dumps([epoch, batch.indices.tolist()]) + "\n")
            if number == self.stop_after:
                os.kill(os.getpid(), signal.SIGTERM)
            yield batch


class Broken(Plane):
    """On rank 1, the third batch ends the process, or has an infinite loss."""

    def __init__(self, how: str) -> None:
        super().__init__(points=40, batch_size=8)
        self.how = how

    def loss(self, model: nn.Module, batch: Points) -> Any:
        if dist.get_rank() == 1 and len(self.seen) == 2:
            if self.how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            batch = replace(batch, y=batch.y * float("inf"))
        return super().loss(model, batch)


class Unseen(Silent):
    """Fails to show the second step."""

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        if step == 2:
            raise BrokenPipeError


def learn(
    model: nn.Module, task: Any, config: TrainConfig, out: Path, observer: Observer = SILENT
) -> None:
    out.mkdir(exist_ok=True)
    fit(
        prepare(model, config),
        task,
        config,
        out,
        seed=1,
        environment={},
        save_best=lambda model: None,
        observer=observer,
    )


def curves(rank: int, world: int, folder: Path, options: dict[str, Any]) -> None:
    """Train every model in every way."""
    from tests.train.cases import CASES, WAYS  # which takes seconds

    for name in options.get("cases", CASES):
        for way in WAYS if world > 1 else ["alone"]:
            model, task, config = CASES[name]()
            config = replace(config, **options.get("config", {}))
            if world > 1:
                config = replace(config, parallel=way)  # type: ignore[arg-type]
            learn(model, task, config, folder / f"{name}-{way}")


def plane(rank: int, world: int, folder: Path, options: dict[str, Any]) -> None:
    """Learn a plane, and write down by which points; a rank may be stopped in between."""
    after = options["after"] if rank == options.get("stop") else None
    task = Watched(folder / f"seen-{world}-{rank}.jsonl", after)
    changes = {"log_every": 1, "ema": 0.9} | options.get("config", {})
    try:
        learn(network(dropout=0), task, of_plane(**changes), folder / "run")
    except InterruptedRunError:
        print("interrupted", flush=True)


def broken(rank: int, world: int, folder: Path, options: dict[str, Any]) -> None:
    """One rank fails; print what the others say."""
    unseen = options["how"] == "unseen"
    task, observer = (Plane(), Unseen()) if unseen else (Broken(options["how"]), SILENT)
    try:
        learn(network(dropout=0), task, of_plane(save_every=1), folder / "run", observer)
    except ManyheadsError as error:
        print(f"{type(error).__name__}: {error}", flush=True)


def agreement(rank: int, world: int, folder: Path, options: dict[str, Any]) -> None:
    """What rank 0 does for all, and what is heard where it or another rank fails."""
    print(json.dumps([on_first(rank_and_world), exchange(rank)]), flush=True)
    for fails in (0, 1):
        try:
            with agreed():
                if rank == fails:
                    raise UsageError("wrong")
                on_first(lambda: None)  # the one that failed is not there
        except ManyheadsError as error:
            print(f"{type(error).__name__} {error.exit_code}: {error}", flush=True)
    try:
        on_first(lambda: [][1])
    except (IndexError, ManyheadsError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)


JOBS = {"curves": curves, "plane": plane, "broken": broken, "agreement": agreement}


def main(job: str, rank: int, world: int, folder: Path, options: dict[str, Any]) -> None:
    if world > 1:
        store = f"file://{folder}/store-{job}-{world}"
        wait = timedelta(seconds=60)
        dist.init_process_group("gloo", store, wait, world_size=world, rank=rank)
    JOBS[job](rank, world, folder, options)
    if world > 1 and job != "broken":
        dist.destroy_process_group()


def fork(job: str, world: int, folder: Path, options: dict[str, Any]) -> None:
    """Run all ranks in processes of their own, which need not import anything again."""
    torch.set_num_threads(1)
    ranks = {}
    for rank in range(world):
        if (process := os.fork()) == 0:
            os.dup2(os.open(folder / f"printed-{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            try:
                main(job, rank, world, folder, options)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        ranks[process] = rank
    failed = []
    for _ in range(world):
        process, status = os.wait()
        failed += [ranks[process]] if status else []
    print(json.dumps(failed))


if __name__ == "__main__":
    fork(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4]))
