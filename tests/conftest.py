"""What every test shares."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests import browser, shape_checks

shape_checks.install()
REPORTS = "manyheads-*.txt"
# Temporary files of this session alone: another one on this machine has reports of its own.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="manyheads-tests-")
Path(tempfile.tempdir).chmod(0o755)  # tests that give up their rights work in it as well
# Of the first process; those of `-n` inherit it, and share what one of them makes.
os.environ.setdefault("MANYHEADS_TESTS_SHARED", str(Path(tempfile.tempdir) / "shared"))
# Of the processes that tests start, too: threads that wait for each other keep a core busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# An example may take as long as the machine needs. The same are drawn every time, so that a failure
# is due to the change; `make full` draws new ones (--hypothesis-profile new), and one that fails
# becomes an @example.
# Where CI is set, what a profile leaves out is as hypothesis has it for CI: the same examples.
settings.register_profile(
    "new", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
settings.register_profile(
    "same", settings.get_profile("new"), derandomize=True, database=None, max_examples=50
)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: at test size, two that wait for each other are many times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def no_reports() -> Iterator[None]:
    """Fail if an error that should not occur did occur, here or in a process that was started.

    The command reports it in a file, whatever became of its message.
    """
    folder = Path(tempfile.gettempdir())
    before = {*folder.glob(REPORTS)}
    yield
    new = [path for path in folder.glob(REPORTS) if path not in before]
    texts = [path.read_text() for path in new if path.exists()]
    for path in new:
        path.unlink(missing_ok=True)
    assert not texts, "\n".join(texts)


@pytest.fixture(scope="session")
def translator() -> Path:
    """A translator's folder: look, don't touch."""
    return _trained("translator")


@pytest.fixture(scope="session")
def classifier() -> Path:
    """A classifier's folder: look, don't touch."""
    return _trained("classifier")


def _trained(kind: str) -> Path:
    # Not at the top: this file is read before the hook that lets shapes be checked is in place.
    from tests.made import trained

    return trained(kind)


@pytest.fixture
def own_translator(translator: Path, tmp_path: Path) -> Path:
    """A copy to write to, or to damage."""
    return shutil.copytree(translator, tmp_path / "own-translator")


@pytest.fixture
def own_classifier(classifier: Path, tmp_path: Path) -> Path:
    """A copy to write to, or to damage."""
    return shutil.copytree(classifier, tmp_path / "own-classifier")


def pytest_unconfigure() -> None:
    """Remove the temporary files."""
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in the closing lines what the page was not tested for: a skip is easily overlooked."""
    skipped = sum(
        browser.MISSING in str(report.longrepr)
        for report in terminalreporter.stats.get("skipped", [])
    )
    if skipped:
        terminalreporter.section("THE PAGE WAS NOT TESTED", red=True, bold=True)
        terminalreporter.line(
            f"{skipped} tests of the page of `manyheads look` were skipped: {browser.MISSING}. "
            f"{browser.REMEDY}",
            red=True,
        )
