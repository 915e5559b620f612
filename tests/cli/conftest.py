"""Calling the command as its users do."""

import io
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from manyheads.cli.main import main


class Answer(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Call = Callable[..., Answer]


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    """Run the command in this process and in a folder of its own: main(), exit code and all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("MANYHEADS_DATA", raising=False)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own

    def run(*words: str | os.PathLike[str], stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "argv", ["manyheads", *(os.fspath(word) for word in words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return Answer(int(caught.value.code or 0), out, err)

    return run
