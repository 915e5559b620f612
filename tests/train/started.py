"""Start the ranks of tests/train/ranks.py, and read what they have stored."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from manyheads.train.sharded_checkpoint import read, shapes

ROOT = Path(__file__).parents[2]
SECONDS = 120  # after which no process is left


def run_ranks(
    job: str, world: int, folder: Path, *, killed: int | None = None, **options: Any
) -> list[str]:
    """Run a job of tests/train/ranks.py to its end; return what each rank prints.

    All ranks end well, except the one that is `killed`.
    """
    program = (sys.executable, "-m", "tests.train.ranks")
    with subprocess.Popen(
        [*program, job, str(world), str(folder), json.dumps(options)],
        cwd=ROOT,
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as started:
        try:
            output, errors = started.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)  # with its ranks
            raise
    assert started.returncode == 0, errors
    assert json.loads(output) == ([] if killed is None else [killed]), errors
    return [(folder / f"printed-{rank}").read_text() for rank in range(world)]


def stored(folder: Path) -> dict[str, Tensor]:
    """Read the newest checkpoint of a run, whoever wrote it, by names like "model/NAME"."""
    newest = sorted((folder / "state").glob("step-*"))[-1]
    parts = ("model", "optimizer", "average")
    if (newest / "model.safetensors").exists():
        return {
            f"{part}/{name}": tensor
            for part in parts
            for name, tensor in load_file(newest / f"{part}.safetensors").items()
        }
    found = {name: torch.empty_like(x, device="cpu") for name, x in shapes(newest).items()}
    read(newest, found)
    return found
