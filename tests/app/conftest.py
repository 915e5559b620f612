"""Trained folders, one for the whole run; a test that changes one takes a copy."""

import shutil
from pathlib import Path

import pytest

from tests.made import trained


@pytest.fixture(scope="session")
def translator() -> Path:
    """A translator's folder: look, don't touch."""
    return trained("translator")


@pytest.fixture(scope="session")
def classifier() -> Path:
    """A classifier's folder: look, don't touch."""
    return trained("classifier")


@pytest.fixture
def own_translator(translator: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(translator, tmp_path / "translator")


@pytest.fixture
def own_classifier(classifier: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(classifier, tmp_path / "classifier")
