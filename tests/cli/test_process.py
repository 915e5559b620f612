"""The command as a process: signals, pipes, exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyheads.predict.stream import AT_A_TIME
from tests.made import CLASSIFY, write_halves, write_recipe

COMMAND = [sys.executable, "-m", "manyheads"]


@pytest.fixture
def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


def wait_for(found: Path, process: subprocess.Popen[str], seconds: float = 120) -> None:
    """Until the path exists; the process must live that long."""
    end = time.monotonic() + seconds
    while not found.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, f"{found} did not appear"
        time.sleep(0.01)


def test_ctrl_c_in_training(tmp_path: Path, environment: dict[str, str]) -> None:
    """130, the state saved, how to go on; and the same command with --resume goes on."""
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    command = [*COMMAND, "train", str(recipe), "--out", str(tmp_path / "out"), "train.save_every=5"]
    long = [*command, "train.steps=1000000", "train.validate_every=1000000"]
    process = subprocess.Popen(
        long, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(tmp_path / "out" / "state" / "step-000000005", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "manyheads: Stopped after step" in err
    assert "--resume" in err
    saved = sorted((tmp_path / "out" / "state").iterdir())[-1]
    assert f"Stopped after step {int(saved.name.removeprefix('step-'))} of" in err
    process = subprocess.Popen(
        [*long, "--resume"],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(saved.with_name(f"step-{int(saved.name[5:]) // 5 * 5 + 10:09d}"), process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130


def test_ctrl_c_while_waiting_for_text(translator: Path, environment: dict[str, str]) -> None:
    """130, and no traceback."""
    # A job in the background of a shell inherits that SIGINT is ignored; a person's does not.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*COMMAND, "translate", "--model", str(translator), "--beam", "1"],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    signal.signal(signal.SIGINT, inherited)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("nine\n" * AT_A_TIME)  # as many as are answered together
    process.stdin.flush()
    answers = [process.stdout.readline() for _ in range(AT_A_TIME)]
    assert set(answers) == {"neun\n"}
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "manyheads: interrupted.\n")


@pytest.mark.parametrize("name", ["typing", "manyheads.lazy", "typer.models", "numpy", "torch._C"])
def test_ctrl_c_while_modules_are_imported(name: str, environment: dict[str, str]) -> None:
    """When Python has just imported one of them: of the package, of its command, of a verb."""
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], "translate", "A dog."]
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, inherited)
    assert process.stderr is not None
    imported = next(line for line in process.stderr if line.rpartition("|")[2].strip() == name)
    assert imported.startswith("import time:")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    rest = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert (out, rest) == ("", ["manyheads: interrupted."])
    # A shell has 130 for both; Python ends so where the signal met code that was made of text.
    assert process.returncode in (130, -signal.SIGINT)


def test_a_look_is_written_though_its_reader_leaves(
    translator: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """`manyheads look ... --out look.json | head -1`: the file is there, and is named."""
    process = subprocess.Popen(
        [*COMMAND, "look", str(translator), "one two", "--out", "look.json"],
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # long before anything is printed
    err = process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
    assert process.returncode == 0
    assert "wrote look.json\n" in err
    assert json.loads((tmp_path / "look.json").read_text(encoding="utf-8"))["text"] == "one two"


def test_a_reader_that_leaves_early(translator: Path, environment: dict[str, str]) -> None:
    """`manyheads translate | head -1`: no traceback for what is nobody's fault."""
    process = subprocess.Popen(
        [*COMMAND, "translate", "--model", str(translator), "--beam", "1"],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write("nine\n" * 3000)
    process.stdin.close()
    assert process.stdout.readline() == "neun\n"
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
    assert err == ""
    assert process.returncode == 0


def test_an_error_is_a_message(environment: dict[str, str]) -> None:
    """On stderr, in one piece, with the exit code of a wrong call."""
    done = subprocess.run(
        [*COMMAND, "train", "dgits"], env=environment, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("manyheads: There is no recipe 'dgits'")
