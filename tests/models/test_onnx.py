"""Models as ONNX graphs: ONNX Runtime gives torch's values for other sizes than were traced."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.tagger import RecurrentTaggerConfig
from tests.models.onnx_graphs import EVERY

ROOT = Path(__file__).parents[2]
BAR = 1e-4  # of the largest value
RECURRENT = (Seq2SeqConfig, RecurrentTaggerConfig)
# Kinds that tests/engines does not export; `make full` has all.
SOME = ("swin-t", "captioner-tiny")


def gaps(names: Sequence[str], timeout: float) -> dict[str, float | str]:
    """What `onnx_graphs.py` found, in a process without jaxtyping's hook."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.onnx_graphs", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return found


def _agree(found: dict[str, float | str], names: Sequence[str]) -> None:
    wrong = {name: each for name, each in found.items() if isinstance(each, str) or each >= BAR}
    assert not wrong
    assert [*found] == [*names]


@pytest.mark.timeout(600)
def test_one_of_each_kind() -> None:
    _agree(gaps(SOME, 580), SOME)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_every_preset() -> None:
    every = [name for name, config in EVERY.items() if not isinstance(config, RECURRENT)]
    _agree(gaps(every, 3500), every)


def test_recurrent_layers_have_no_graph() -> None:
    """A graph holds them unrolled, for one length."""
    recurrent = [config for config in EVERY.values() if isinstance(config, RECURRENT)]
    assert recurrent
    assert not any(config.graphs(config.build()) for config in recurrent)
