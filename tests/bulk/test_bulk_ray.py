"""A document divided among the actors of a Ray cluster: the same answers, whatever dies."""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from manyheads.errors import MissingExtraError, UsageError
from manyheads.project.ray_cluster import absolute_model, connect
from tests.web.test_process import alive, children

MODEL = "date-en-ko"
LINES = [f"{day} May {year}" for year in range(1700, 2025) for day in (1, 2, 3, 4)]
PATIENCE = 120
# Not importorskip: importing Ray warns of much.
ON_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="needs manyheads[ray]")


def command(*more: str) -> list[str]:
    return [sys.executable, "-m", "manyheads", "translate", "--model", MODEL, *more]


def descendants(pid: int) -> list[int]:
    return [each for child in children(pid) for each in (child, *descendants(child))]


def actors(pid: int) -> list[int]:
    """The processes of actors, by the title that Ray gives them."""
    found = []
    for each in descendants(pid):
        try:
            title = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::MapWorker"):
            found.append(each)
    return found


@ON_RAY
@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_same_file_though_an_actor_and_the_command_are_killed(tmp_path: Path) -> None:
    """What was finished is kept for other processes too; nothing of Ray is left."""
    source, one, several = (tmp_path / name for name in ("in.txt", "one.txt", "several.txt"))
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    subprocess.run(command("--file", str(source), "--out", str(one)), check=True, timeout=PATIENCE)
    given = command("--file", str(source), "--out", str(several))
    on_ray = [*given, "--ray", "local", "--workers", "2"]
    parts = tmp_path / "several.txt.parts"
    with subprocess.Popen(on_ray, stderr=subprocess.DEVNULL) as running:
        end = time.monotonic() + PATIENCE
        while not list(parts.glob("*.json")):
            assert running.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        everybody = descendants(running.pid)
        assert len(everybody) >= 4
        running.kill()
    end = time.monotonic() + PATIENCE
    while any(map(alive, everybody)):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert not several.exists()
    kept = {path: path.stat().st_mtime_ns for path in parts.glob("*.json")}
    with subprocess.Popen(on_ray, stderr=subprocess.PIPE, text=True) as resumed:
        end = time.monotonic() + PATIENCE
        while not (found := actors(resumed.pid)):
            assert resumed.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        os.kill(found[0], signal.SIGKILL)
        said = resumed.communicate(timeout=PATIENCE)[1]
    assert resumed.returncode == 0, said
    assert kept
    assert several.read_bytes() == one.read_bytes()
    assert not parts.exists()


@ON_RAY
@pytest.mark.full
@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense"])
def test_no_cluster_there(address: str, tmp_path: Path) -> None:
    """Told within seconds: Ray itself would try for minutes."""
    source = tmp_path / "in.txt"
    source.write_text("1 May 2024\n", encoding="utf-8")
    found = subprocess.run(
        command("--file", str(source), "--ray", address),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 2
    assert f"There is no Ray cluster at {address!r}" in found.stderr
    assert "--ray" in found.stderr


@ON_RAY
@pytest.mark.full
def test_a_model_that_cannot_be_loaded(tmp_path: Path) -> None:
    """The reason of an actor reaches the user."""
    code = """
from manyheads.bulk.blocks import Setup, finish_blocks
from manyheads.bulk.ray_actors import RayRunner
from manyheads.errors import NotFoundError
from manyheads.asks.decode_config import DecodeConfig
runner = RayRunner("local", 1)
setup = Setup("nosuch", "torch", None, 1, (), DecodeConfig(), 1)
try:
    finish_blocks(runner, setup, {0: ["x"]}, lambda *_: None, print)
except NotFoundError as error:
    print("told:", error)
finally:
    runner.close()
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert "told: There is no model" in found.stdout


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[ray\]'"):
        connect("local")


def test_not_through_the_client() -> None:
    """Ray Data fails there with an error that says nothing."""
    with pytest.raises(UsageError, match="ray job submit"):
        connect("ray://127.0.0.1:10001")


def test_a_model_s_name_for_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_model(MODEL) == MODEL
    assert absolute_model("runs/mine") == str(tmp_path / "runs" / "mine")
