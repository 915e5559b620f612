"""A missing browser is never overlooked: `.ci/run` and the closing lines of pytest say so."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tests import browser
from tests.conftest import pytest_terminal_summary

ROOT = Path(__file__).parents[1]
PROFILES = (
    "import tests.conftest; from hypothesis import settings; "
    "print(*(settings.get_profile(each).derandomize for each in ('same', 'new')))"
)
FAILS = "echo E: no network; exit 100"
INSTALLS = (
    """[ "$1" = update ] || { printf '#!/bin/sh\\n' >{at}/chromium; chmod +x {at}/chromium; }"""
)


def run(folder: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run `.ci/run` where nothing is installed but what it needs and these programs."""
    for name in ("bash", "chmod", "dirname", "mktemp", "rm", "tail"):
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    for name, text in {"make": "echo make $@", **programs}.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!{shutil.which('sh')}\n{text}\n")
        path.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k != "MANYHEADS_BROWSER"}
    return subprocess.run(
        [folder / "bash", ROOT / ".ci" / "run"],
        env=environment | {"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("apt_get", [FAILS, "exit 0"], ids=["fails", "leaves no browser"])
def test_a_browser_that_cannot_be_installed_fails(tmp_path: Path, apt_get: str) -> None:
    done = run(tmp_path, apt_get=apt_get)
    assert done.returncode == 1
    assert "make test" not in done.stdout
    assert "FAILED: no Chromium" in done.stderr
    assert ("E: no network" in done.stderr) == (apt_get == FAILS)


def test_a_browser_is_installed(tmp_path: Path) -> None:
    done = run(tmp_path, apt_get=INSTALLS.replace("{at}", str(tmp_path)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "make test\n", "")


@pytest.mark.parametrize("name", browser.NAMES)
def test_a_browser_that_is_there_is_enough(tmp_path: Path, name: str) -> None:
    """By every name under which the tests look for one."""
    done = run(tmp_path, apt_get=FAILS, **{name.replace("-", "_"): "exit 0"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "make test\n", "")


def test_without_apt_get_there_is_a_warning(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (0, "make test\n")
    assert "WARNING" in done.stderr
    assert "WILL BE SKIPPED" in done.stderr


def test_pytest_tells_what_was_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    """How many tests of the page, and what helps; nothing is said where none were skipped."""
    reasons = [f"Skipped: {browser.MISSING}. {browser.REMEDY}", "Skipped: no sklearn"]

    def tell(*reasons: str) -> str:
        skipped = [SimpleNamespace(longrepr=("file", 1, reason)) for reason in reasons]
        pytest_terminal_summary(
            SimpleNamespace(  # type: ignore[arg-type]
                stats={"skipped": skipped},
                section=lambda title, **_: print(title),
                line=lambda text, **_: print(text),
            )
        )
        return capsys.readouterr().out

    assert tell() == tell(reasons[1]) == ""
    told = tell(*reasons, reasons[0])
    assert "NOT TESTED" in told
    assert "2 tests of the page" in told
    assert browser.REMEDY in told


def test_the_same_examples_are_drawn_every_time() -> None:
    """So that a failure is due to the change; the slow tier draws new ones, also in CI."""
    assert settings.get_current_profile_name() in ("same", "new", "mutation")
    for variables in ({}, {"CI": "true"}):
        done = subprocess.run(
            [sys.executable, "-c", PROFILES],
            cwd=ROOT,
            env={k: v for k, v in os.environ.items() if k != "CI"} | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "True False\n"
    full = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nfull:")[2]
    assert "--hypothesis-profile new" in full.partition("\n\n")[0]
