"""`manyheads export` in a process without jaxtyping's hook, which would fix the open sizes."""

import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import manyheads
from manyheads.predict.base_predictor import Predictor
from tests import language
from tests.shared_folders import made_once

P = TypeVar("P", bound=Predictor)
ROOT = Path(__file__).parents[1]


def exported(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run `manyheads export`."""
    return subprocess.run(
        [sys.executable, "-m", "manyheads", "export", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def exported_language(kind: str, task: type[P]) -> tuple[P, P]:
    """One of `tests.language` on torch and on ONNX Runtime; its graph is made once a test run."""

    def make(base: Path) -> None:
        done = exported(language.trained(kind), "--to", "onnx", "--out", base / "model")
        assert done.returncode == 0, done.stderr

    out = made_once(f"onnx-{kind}", make) / "model"
    return manyheads.load(out, task, engine="torch"), manyheads.load(out, task, engine="onnx")
