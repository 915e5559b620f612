"""A model folder that is trained again while it is served: loaded whole, or refused."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manyheads import load
from manyheads.documents.document_translation import translate_document
from manyheads.errors import ChangedFolderError
from manyheads.predict.load import LoadVersion
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model
from manyheads.web.worker_process import ProcessWorker
from tests.web.running import Running, running
from tests.web.test_worker import until

BEFORE, AFTER = "multi30k-en-de", "date-en-ko"
TEXT = "Friday, 20 November 2026"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a translator into German."""
    return Path(shutil.copytree(find_model(BEFORE), tmp_path / "own"))


def train_again(folder: Path) -> None:
    """Replace what is in a folder, file by file, by a translator into Korean."""
    for each in folder.iterdir():
        each.unlink()
    for each in find_model(AFTER).iterdir():
        shutil.copy(each, folder)


def test_another_version_is_refused(folder: Path) -> None:
    before = LoadVersion(folder, ModelFolder(folder).version)
    assert before()
    train_again(folder)
    with pytest.raises(ChangedFolderError, match="written anew"):
        before()
    assert LoadVersion(folder, ModelFolder(folder).version)()(TEXT) == load(AFTER)(TEXT)


def test_a_folder_that_changes_while_it_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its weights and its tokenizers: nothing made of two versions is kept."""
    read = ModelFolder.tokenizers

    def later(own: ModelFolder) -> object:
        found = read(own)
        train_again(folder)
        return found

    version = ModelFolder(folder).version
    monkeypatch.setattr(ModelFolder, "tokenizers", later)
    with pytest.raises(ChangedFolderError):
        LoadVersion(folder, version)()


def test_a_folder_trained_again_is_served_without_a_restart(folder: Path) -> None:
    """After its worker died: until all its files are there it is refused, then all is new."""
    answers: dict[str, list[str | None]] = {}
    for name in (BEFORE, AFTER):
        own: Any = load(name)
        answers[name] = [own(TEXT), translate_document(own, TEXT).text]
    worker = ProcessWorker(every=0.2)
    with running([str(folder)], worker=worker) as server:
        until(lambda: server.served.ready)
        assert list(ask(server)) == answers[BEFORE]
        shutil.copy(find_model(AFTER) / "model.safetensors", folder)
        assert list(ask(server)) == answers[BEFORE]  # it is in memory, as a whole
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        until(lambda: worker.restarts == 1 and worker.status() == "running")
        assert {None} == set(ask(server))
        train_again(folder)
        seen: list[str | None] = []
        end = time.monotonic() + 60
        while seen[-2:] != answers[AFTER]:
            assert time.monotonic() < end, seen
            seen += ask(server)
        assert set(seen) <= {None, *answers[AFTER]}
        facts = server.client.get("/api/v1/models").json()["models"][0]
        assert (facts["target"], facts["loaded"]) == ("ko", True)
        assert server.client.get("/health/ready").status_code == 200


def ask(server: Running) -> Iterator[str | None]:
    """Translate in each way; None where it is refused."""
    for path, given in (("", {"texts": [TEXT]}), ("/document", {"text": TEXT})):
        sent = {**given, "model": "own"}
        found = server.client.post(f"/api/v1/translate{path}", json=sent)
        assert found.status_code in (200, 500, 503), found.text
        if found.status_code != 200:
            yield None
        else:
            told = found.json()
            yield told["text"] if path else told["answers"][0]["translation"]
