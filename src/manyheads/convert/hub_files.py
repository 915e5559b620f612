"""Files of a repository on the Hugging Face hub: each is fetched, and checked by its hash."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from manyheads.convert.foreign_files import first_line
from manyheads.errors import DataError, ManyheadsError, NotFoundError, UsageError, optional_import
from manyheads.project.hub_name import read_hub_name
from manyheads.project.lock import locked
from manyheads.version import __version__

DOWNLOADS = "hf-downloads"  # in the cache
TIMEOUT = 30  # seconds without an answer about a repository
LARGE = 1 << 22  # bytes of a file whose progress is shown
TOKEN = (
    "set HF_TOKEN to an access token of yours (https://huggingface.co/settings/tokens), and try "
    "again"
)


class Repository:
    """A repository at one commit; what is fetched lies in `folder`.

    A file gets its name there when it is complete and its hash is right. What an interrupted
    download has brought stays, and the next one goes on behind it.
    """

    def __init__(self, name: str) -> None:
        """Ask the hub which files there are.

        Raises:
            UsageError: not the name of a model, or one whose makers want to know who uses it.
            MissingExtraError: the package that fetches is not installed.
            NotFoundError: there is no such model or revision.
            DataError: the hub cannot be reached, or sends something else than it announces.
        """
        repository, revision = read_hub_name(name)
        # Nothing but the model is asked for, unless the user wants it so.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        with optional_import("huggingface_hub", extra="hub"):
            from huggingface_hub import HfApi
        self.name, self.repository = name, repository
        endpoint = os.environ.get("HF_ENDPOINT")  # as it is now: theirs is read when imported
        self._api = HfApi(endpoint, library_name="manyheads", library_version=__version__)
        with self._explained():
            info = self._api.model_info(
                repository, revision=revision, files_metadata=True, timeout=TIMEOUT
            )
            # A folder is named so: a server of somebody else's may say anything.
            if not re.fullmatch("[0-9a-f]{40}", info.sha or ""):
                raise DataError(f"{self._api.endpoint} says no commit of {name}: is it a hub?")
        self.files = {each.rfilename: each for each in info.siblings or ()}
        self.commit = str(info.sha)
        self.folder = read_hub_name(name).under(DOWNLOADS) / "files" / self.commit

    def fetch(self, *names: str) -> None:
        """Fetch those of these files that there are; raise as `Repository` does."""
        for name in names:
            if name in self.files and not (self.folder / name).exists():
                with self._explained():
                    self._fetch(self.files[name])

    def _fetch(self, file: Any) -> None:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.file_download import http_get

        name, part = file.rfilename, self.folder / f".{file.rfilename}.part"
        part.parent.mkdir(parents=True, exist_ok=True)
        endpoint = self._api.endpoint
        with part.open("ab") as out:
            http_get(
                hf_hub_url(self.repository, name, revision=self.commit, endpoint=endpoint),
                out,
                resume_size=out.tell(),
                headers=self._api._build_hf_headers(),
                expected_size=file.size,
                displayed_filename=name,
                tqdm_class=cast(Any, _bar),
            )
        # Large files are known by their sha256, small ones as git knows them.
        expected = file.lfs.sha256 if file.lfs else file.blob_id
        digest = hashlib.sha256() if file.lfs else hashlib.sha1(b"blob %d\0" % file.size)
        with part.open("rb") as content:
            hashlib.file_digest(content, lambda: digest)
        if digest.hexdigest() != expected:
            part.unlink()
            raise DataError(
                f"{name} of {self.name} is not the file that the hub announces: its hash is "
                f"{digest.hexdigest()}, expected {expected}. It was removed; try again."
            )
        part.rename(self.folder / name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from huggingface_hub import errors

        page = f"{self._api.endpoint}/{self.repository}"
        try:
            yield
        except DataError:
            raise
        except errors.GatedRepoError:
            raise UsageError(
                f"{self.name} is gated: its makers give it to those who accept their terms. Accept "
                f"them at {page}, {TOKEN}."
            ) from None
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise NotFoundError(
                f"There is no {self.name} on the hub, or it is private. Check the name (and the "
                f"revision behind @) at {page}; for a private model {TOKEN}."
            ) from None
        except errors.OfflineModeIsEnabled:
            raise DataError(
                f"{self.name} is not on this machine, and HF_HUB_OFFLINE is set: unset it to "
                "fetch the model. From then on no network is needed."
            ) from None
        except Exception as error:  # no network, a server that fails, a full disk
            raise DataError(
                f"{self.name} is not on this machine, and could not be fetched from {page}: "
                f"{first_line(error)} Check the network and try again: a download goes on where it "
                "stopped."
            ) from error


@contextmanager
def open_repository(name: str) -> Iterator[Repository]:
    """Open a repository whose files are needed in this block, and removed behind it.

    One process at a time. If the download breaks off, what it has brought stays.
    """
    downloads = read_hub_name(name).under(DOWNLOADS)
    with locked(downloads, "fetches", wait=True):
        is_over = False
        try:
            yield Repository(name)
            is_over = True
        except ManyheadsError as error:
            is_over = not isinstance(error, DataError)  # trying again would be of no use
            raise
        finally:
            if is_over:
                shutil.rmtree(downloads / "files", ignore_errors=True)


@contextmanager
def _bar(*, total: int | None, initial: int, desc: str, **_: object) -> Iterator[SimpleNamespace]:
    """Show on stderr what has come of a large file; called as huggingface_hub calls a bar."""
    columns = BarColumn(), DownloadColumn(), TimeRemainingColumn()
    name = TextColumn("{task.description}", markup=False)
    small = (total or 0) < LARGE
    with Progress(name, *columns, console=Console(stderr=True), disable=small) as drawn:
        task = drawn.add_task(desc, total=total, completed=initial)
        yield SimpleNamespace(update=partial(drawn.advance, task))
