"""What commands show of their work, by hand: figures of a bar, tables, what went wrong."""

import io
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from manyheads.cli import progress
from manyheads.cli.bulk import _Shown
from manyheads.cli.flags import with_flags
from manyheads.cli.printed_answers import print_evaluation
from manyheads.cli.progress import ProgressBar
from tests.cli.test_terminal import Terminal


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> ProgressBar:
    """One on a terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal(io.BytesIO(), encoding="utf-8"))
    return ProgressBar()


def test_a_bar_shows_speeds_and_no_other_number(bar: ProgressBar) -> None:
    line = {"loss": 2.5, "learning_rate": 5e-4, "tokens_per_second": 1234.4, "epoch": 3}
    bar.progress(10, 100, line)
    assert bar._bar.tasks[0].description == "loss 2.500  lr 5.0e-04  1,234 tokens/s"


def test_a_bar_shows_the_time_left(bar: ProgressBar, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the steps since the first one it was told of, if the line does not say it."""
    now = 1000.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    shown = []
    for step, line in (
        (20, {}),  # kept from an earlier run: nothing was measured yet
        (40, {}),  # 20 steps in 10 s, and 60 to go
        (60, {"seconds_left": 100.0}),  # a training knows it, with its validations
        (100, {}),
    ):
        bar.progress(step, 100, line)
        shown.append(bar._bar.tasks[0].description)
        now += 10
    assert shown == ["", "30 s left", "1 min 40 s left", "0 s left"]


def test_a_bar_moves_before_the_first_step(bar: ProgressBar) -> None:
    """Learning a vocabulary takes long; without a step, nothing is left of the bar."""
    screen = bar.console.file

    def drawn() -> str:
        screen.flush()
        return screen.buffer.getvalue().decode()  # type: ignore[attr-defined]

    with bar:
        bar.say("learning a vocabulary")
        end = time.monotonic() + 10
        while drawn().count("0:00:00") < 3 and time.monotonic() < end:
            time.sleep(0.05)
    assert drawn().count("0:00:00") >= 3
    assert not bar._bar.tasks[0].visible


def test_where_there_is_no_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """Not even an empty line at its end; a line of the log is printed once, at its own step."""
    with ProgressBar() as bar:
        bar.progress(1, 2, {"sentences_per_second": 2.0})
        for step in (1, 2):
            bar.progress(step, 2, {"step": 1, "loss": 2.5, "learning_rate": 5e-4})
    assert capsys.readouterr().err == "step 1 of 2: loss 2.500  lr 5.0e-04\n"


def test_classes_of_an_evaluation(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """The worst first, what is taken for what, and images that were not read."""
    line = {
        "data": "photos",
        "all": {"accuracy": {"value": 50.0, "signature": "top-1"}},
        "classes": {
            "cat": {"images": 2, "precision": 1.0, "recall": 0.5, "f1": 2 / 3},
            "horse": {"images": 1000, "precision": 0.25, "recall": 0.5, "f1": 1 / 3},
        },
        "confused": [{"count": 1, "is": "cat", "said": "horse"}],
        "confusion": [[1, 1], [0, 1000]],
        "left_out": 1234,
    }
    print_evaluation(line, tmp_path, as_json=False)
    out, err = capsys.readouterr()
    assert out.splitlines()[-7:] == [
        "  class    images  precision  recall      F1",
        "  horse     1,000       0.25    0.50    0.33",
        "  cat           2       1.00    0.50    0.67",
        "  1 of cat taken for horse",
        "  is / said     cat   horse",
        "  cat         1       1",
        "  horse       0   1,000",
    ]
    assert err == "manyheads: photos: 1,234 images could not be read and were left out.\n"


def test_the_end_of_a_long_translation(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing where all went well; otherwise how often it did not."""
    runner: Any = SimpleNamespace(restarts=0)
    shown = _Shown(runner, None)
    shown.watch(1000, 1000)
    shown.end()
    assert capsys.readouterr().err == ""
    shown.failed("block 3 failed")
    runner.restarts = 2
    shown.watch(1200, 1200)
    shown.end()
    assert capsys.readouterr().err.splitlines() == [
        "manyheads: block 3 failed",
        "manyheads: 2 processes ended and were started again",
        "manyheads: all 1,200 sentences are translated; failures: 2",
    ]


def test_options_without_the_name_of_their_parameter() -> None:
    assert with_flags("give `texts` or a `folder`") == "give --text or a --from"
