"""What reaches a terminal, a pipe, and nobody; and errors that nobody foresaw."""

import io
import os
import pty
import subprocess
import sys
import time
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.cli import terminal
from manyheads.cli.main import TRACEBACK, main
from manyheads.cli.printed_answers import warn
from manyheads.cli.terminal import console, escape_controls, visible, waiting
from manyheads.memory import is_out_of_memory
from manyheads.project import paths
from tests.cli.conftest import Call
from tests.made import CLASSIFY, half, numbers, write_halves, write_lines, write_recipe

COMMAND = [sys.executable, "-m", "manyheads"]
EVIL = "\x1b[31mred\x9b2J\u202egnp\x7f\r.png"


class Terminal(io.TextIOWrapper):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


class Gone(io.RawIOBase):
    """A pipe that nobody reads, or a disk that is full."""

    def __init__(self, error: OSError | None) -> None:
        self.error = error

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.error is not None:
            raise self.error
        return len(data)


# --- Work that takes a while --------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (0.6, True)])
def test_long_work_is_shown(monkeypatch: pytest.MonkeyPatch, seconds: float, shown: bool) -> None:
    """What is done and for how long, on stderr; a terminal is left as it was."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", Terminal(raw, encoding="utf-8", write_through=True))
    monkeypatch.setenv("TERM", "xterm")
    with waiting("looking into digits"):
        time.sleep(seconds)
    told = raw.getvalue().decode()
    assert ("looking into digits" in told) == shown == ("0:00:00" in told)
    assert told.endswith("\x1b[2K" if shown else "")  # the line is erased


def test_a_remark_has_a_line_beside_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", Terminal(raw, encoding="utf-8", write_through=True))
    monkeypatch.setenv("TERM", "xterm")
    with waiting("measuring digits"):
        time.sleep(0.6)
        warn("one of them is odd")
    before, _, _ = raw.getvalue().decode().partition("manyheads: one of them is odd")
    assert before.endswith("\x1b[2K")  # what is shown is erased first, and drawn again behind


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("doctor", "digits"), "examining digits"),
        (("evaluate", "digits"), "measuring digits"),
        (("compare", "digits", "digits"), "comparing digits and digits"),
        (("init", "pairs.tsv", "--minutes", "1"), "reading pairs.tsv, and timing a few steps"),
    ],
)
def test_verbs_that_take_a_while_say_so(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    said: list[str] = []
    whole = terminal.waiting

    def heard(what: str) -> AbstractContextManager[None]:
        said.append(what)
        return whole(what)

    monkeypatch.setattr(terminal, "waiting", heard)
    lines = [f"{one}\t{other}" for one, other in zip(*numbers(60, seed=1), strict=True)]
    write_lines(tmp_path / "pairs.tsv", lines)
    assert call(*words).code == 0
    assert said == [told]


def test_nothing_is_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, write_through=True))
    with waiting("looking into digits"):
        time.sleep(0.6)
    assert raw.getvalue() == b""


# --- Control characters -------------------------------------------------------------------------


def test_control_characters_are_shown() -> None:
    """Those that a terminal obeys; line ends and other writing systems are left alone."""
    assert visible(EVIL) == r"\x1b[31mred\x9b2J\u202egnp\x7f\r.png"
    kept = "고양이 עברית\tEnd\r\nof\n"
    assert visible(kept) == kept


@pytest.mark.parametrize("kind", [Terminal, io.TextIOWrapper])
def test_stdout_is_exact_unless_it_is_a_terminal(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.TextIOWrapper]
) -> None:
    """Also in names that are not UTF-8; rich's own colours pass, those of a name do not."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", kind(raw, encoding="latin-1"))
    with terminal.standard_streams():
        escape_controls()
        print(f"고{EVIL}\udcff\ud800")
        paper = console(sys.stdout)
        paper.print(visible(f"[b]:cat:{EVIL}"), style="red", soft_wrap=True)
        print("end")
    lines = raw.getvalue().split(b"\n")
    if kind is Terminal:
        assert lines[0] == f"고{visible(EVIL)}\\udcff\\ud800".encode()
    else:
        assert lines[0] == f"고{EVIL}".encode() + b"\xff\\ud800"
    assert f"[b]:cat:{visible(EVIL)}".encode() in lines[1]
    assert lines[2] == b"end"


def test_names_in_messages(call: Call, classifier: Path, tmp_path: Path) -> None:
    """By every way to stderr: an error, a warning, a wrong call."""
    for words in (
        ("classify", "--model", classifier, EVIL),
        ("translate", "--model", EVIL, "x"),
        (EVIL,),
        (f"--{EVIL}",),
        ("translate", f"--{EVIL}", "x"),
        ("translate", "--beam", EVIL, "x"),
        ("info", "digits", EVIL),
        ("train", "digits", f"{EVIL}=1"),
        ("--plugin", EVIL, "models"),
    ):
        answer = call(*words)
        assert answer.code == 2
        assert [sign for sign in "\x1b\x9b\u202e\x7f\r" if sign in answer.err] == []
    call("models")  # `main` shows warnings from now on
    warnings.showwarning(EVIL, UserWarning, "", 0)


def test_a_table_on_a_terminal(classifier: Path, tmp_path: Path) -> None:
    """A real one: a class, an image and a folder with such names."""
    folder = tmp_path / EVIL
    folder.mkdir()
    half(0, 1).save(folder / EVIL)
    command = ("classify", "--model", str(classifier), str(folder))
    master, slave = pty.openpty()
    done = subprocess.run([*COMMAND, *command], stdout=slave, stderr=slave, check=False)
    os.close(slave)
    shown = os.read(master, 10_000).decode()
    os.close(master)
    assert done.returncode == 0
    assert visible(EVIL) in shown
    assert [sign for sign in "\x1b\x9b\u202e\x7f" if sign in shown] == []


# --- Streams that fail --------------------------------------------------------------------------


def test_a_reader_that_is_gone(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong, whatever was printed: an answer, a table, the help of any level."""
    for words in (["models"], ["--help"], ["train", "--help"], ["convert", "--help"]):
        monkeypatch.setattr(sys, "argv", ["manyheads", *words])
        raw = Gone(BrokenPipeError())
        gone = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", gone)
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 0
        raw.error = None


def test_an_output_that_is_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message, and exit code 1."""
    monkeypatch.setattr(sys, "argv", ["manyheads", "models"])
    raw = Gone(OSError(28, "No space left on device"))
    full = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith(" cannot be written: No space left on device.\n")
    raw.error = None


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str) -> None:
    """They are empty; what belongs on one of them is not written to another."""
    command = f"{' '.join(COMMAND)} lab nosuch {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("" if "2>" in closed else "manyheads: There is no lab")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "ko_KR.EUC-KR"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_other_locales(locale: dict[str, str]) -> None:
    """Arguments, names and answers are UTF-8."""
    done = subprocess.run(
        [*COMMAND, "lab", "고양이"], env=os.environ | locale, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert "'고양이'" in done.stderr.decode()


def test_training_whose_progress_nobody_reads(tmp_path: Path) -> None:
    """`manyheads train ... 2>&1 | head -1`: the state is saved; exit code 130."""
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    words = ["train", str(recipe), "--out", str(tmp_path / "out")]
    more = ["train.validate_every=5", "train.steps=1000000", "train.save_every=1000000"]
    process = subprocess.Popen(
        [*COMMAND, *words, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    while b"step 5:" not in process.stdout.readline():
        pass
    process.stdout.close()
    assert process.wait(timeout=60) == 130
    (saved,) = (tmp_path / "out" / "state").iterdir()
    assert int(saved.name.removeprefix("step-")) % 5 == 0


# --- The last resort ----------------------------------------------------------------------------


def broken(error: BaseException) -> object:
    def fail(kind: str) -> None:
        raise error

    return fail


def test_an_error_that_nobody_foresaw(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line on stderr, and a report with the traceback; exit code 1."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for error in (KeyError(f"{EVIL}\nmore"), EOFError("early"), RecursionError("deep")):
        monkeypatch.setattr(paths, "shipped", broken(error))
        answer = call("models", "--json")
        assert answer.code == 1
        assert answer.out == ""
        assert "\x1b" not in answer.err
        assert f"an error that should not occur: {type(error).__name__}: " in answer.err
        (report,) = tmp_path.glob("manyheads-*.txt")
        assert str(report) in answer.err
        text = report.read_text()
        assert "Traceback (most recent call last):" in text
        assert "raise error" in text
        assert "manyheads 0" in text
        assert "--json" not in text
        report.unlink()
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(RecursionError):
        call("models")


def test_a_report_that_cannot_be_written(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is still there."""
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    monkeypatch.setattr(paths, "shipped", broken(KeyError("x")))
    answer = call("models")
    assert answer.code == 1
    assert "KeyError: 'x'. A report could not be written" in answer.err


def test_ctrl_c_anywhere(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """130, and a word."""
    monkeypatch.setattr(paths, "shipped", broken(KeyboardInterrupt()))
    assert call("models") == (130, "", "manyheads: interrupted.\n")


def test_ctrl_c_while_a_library_is_imported(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some raise another error then."""
    error = ImportError("numpy.core failed to import")
    error.__context__ = KeyboardInterrupt()
    monkeypatch.setattr(paths, "shipped", broken(error))
    assert call("models") == (130, "", "manyheads: interrupted.\n")


class _FixedError(Exception):
    """An error of a library whose message cannot be set."""

    message = property(lambda self: "what is wrong")


def test_an_error_whose_message_cannot_be_set(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported, and not the attempt to escape its message."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(paths, "shipped", broken(_FixedError("x")))
    assert "should not occur: _FixedError: x" in call("models").err


def test_memory_that_does_not_suffice(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to lower: of Python, of numpy, of torch, of the system."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    for error in (MemoryError(), caught.value, OSError(12, "Cannot allocate memory")):
        assert is_out_of_memory(error)
        monkeypatch.setattr(paths, "shipped", broken(error))
        answer = call("models")
        assert answer.code == 1
        assert answer.err.startswith("manyheads: there is not enough memory. Lower ")
        assert "--beam, --n-best or" in answer.err
    assert not is_out_of_memory(RuntimeError("shapes"))
