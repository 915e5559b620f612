"""Reading what a run wrote about itself."""

import math
from pathlib import Path

import numpy as np
import pytest

from manyheads.errors import FolderError
from manyheads.train.history import NON_FINITE, read_history
from manyheads.train.log import MetricsLog

LINES = """\
{"step": 10, "epoch": 0, "loss": 3.0, "learning_rate": 0.1}
{"step": 20, "epoch": 0, "loss": 2.0, "learning_rate": 0.2}
{"step": 20, "epoch": 0, "val_bleu": 5.0}
{"step": 40, "epoch": 1, "loss": 1.5, "learning_rate": 0.0}
"""


def test_lines_by_kind(tmp_path: Path) -> None:
    """Training, validation, and the line that a kill cut off."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(LINES + '{"step": 50, "lo')
    found = read_history(path)
    assert (len(found), len(found.validations), found.last_step) == (3, 1, 40)
    assert found.steps.tolist() == [10, 20, 40]
    assert found.losses.tolist() == [3.0, 2.0, 1.5]
    assert found.non_finite is None


def test_distance_by_hand(tmp_path: Path) -> None:
    """10 steps from 0 to 0.1, 10 from 0.1 to 0.2, 20 from 0.2 to 0."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(LINES)
    assert np.allclose(read_history(path).distance, [0.5, 2.0, 4.0])


@pytest.mark.parametrize("line", [f'"{NON_FINITE}": 1', '"loss": NaN, "learning_rate": 1'])
def test_a_loss_that_was_no_number(line: str, tmp_path: Path) -> None:
    """However it was written down."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{LINES}{{"step": 41, {line}}}\n')
    found = read_history(path)
    assert (found.non_finite, found.last_step, len(found)) == (41, 41, 3)


def test_no_log(tmp_path: Path) -> None:
    """A run that has only begun, or a converted model."""
    found = read_history(tmp_path / "metrics.jsonl")
    assert (len(found), found.last_step, found.validations) == (0, 0, [])


@pytest.mark.parametrize("line", ["nonsense", '{"loss": 1}', "[1]", '{"step": 1, "loss": "x"}'])
def test_a_damaged_line(line: str, tmp_path: Path) -> None:
    """Its number, and what to do."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(f"{LINES}{line}\n")
    with pytest.raises(FolderError, match=r"line 5 is damaged.*Remove that line"):
        read_history(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A damaged line like any other; in a name that nobody reads they do no harm."""
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(LINES.encode() + b'{"step": 50, "val_\xff": 1.0}\n')
    assert read_history(path).last_step == 50
    path.write_bytes(LINES.encode() + b"\xff\xfe\n")
    with pytest.raises(FolderError, match="line 5 is damaged"):
        read_history(path)


def test_null_is_a_number_that_was_none(tmp_path: Path) -> None:
    """As the log writes NaN, which JSON lacks."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(LINES)
    MetricsLog(path, first_step=40).write({"step": 50, "val_loss": math.nan, "val_bleu": 1.0})
    assert path.read_text() == LINES + '{"step": 50, "val_loss": null, "val_bleu": 1.0}\n'
    assert math.isnan(read_history(path).validations[-1]["val_loss"])


@pytest.mark.parametrize(
    "row", ["3", "[]", '{"loss": 1}', '{"step": 1e400}', '{"step": "5"}', "[" * 9999, "\x00"]
)
def test_a_resumed_run_names_a_damaged_line(row: str, tmp_path: Path) -> None:
    """Nothing is dropped from the log before."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(LINES + f"{row}\n")
    with pytest.raises(FolderError, match=r"metrics\.jsonl, line 5 is damaged"):
        MetricsLog(path, first_step=10)
    assert path.read_text() == LINES + f"{row}\n"
