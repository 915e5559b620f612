"""What every test shares."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests import browser

# An example may take as long as the machine needs. The same are drawn every time, so that a failure
# is due to the change; `make full` draws new ones (--hypothesis-profile new), and one that fails
# becomes an @example.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True, database=None)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: at test size, two that wait for each other are many times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
