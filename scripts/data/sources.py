"""Public sources of data sets: repositories at a commit, packages of npm, files at an address.

Everything is kept in one folder, under the names of the sources. What is there already is used as
it is, so that a source can also be brought by hand.
"""

import base64
import hashlib
import subprocess
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

BLOCK = 1 << 20


class SourceError(Exception):
    """A source that cannot be had, or is not the one that was expected."""


@dataclass(frozen=True)
class Sources:
    """A folder of sources."""

    folder: Path

    def repository(self, name: str, url: str, commit: str, *folders: str) -> Path:
        """Return a checkout of a git repository, or of folders of it, at the commit that names it.

        Raises:
            SourceError: it cannot be fetched, or the folder has another commit.
        """
        place = self.folder / name
        if not (place / ".git").exists():
            place.mkdir(parents=True, exist_ok=True)
            _git(place, "init", "--quiet")
            _git(place, "remote", "add", "origin", url)
        if _git(place, "rev-parse", "--quiet", "--verify", "HEAD", check=False) != commit:
            print(f"{name}: {url} at {commit}")
            _git(place, "fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", commit)
            if folders:
                _git(place, "sparse-checkout", "set", *folders)
            _git(place, "checkout", "--quiet", "--detach", commit)
        return place

    def package(self, name: str, version: str, integrity: str) -> dict[str, bytes]:
        """Return the files of an npm package, checked by the hash that npm has of it.

        Raises:
            SourceError: it cannot be downloaded, or has another hash.
        """
        file = f"{name.rpartition('/')[2]}-{version}.tgz"
        path = self.file(file, f"https://registry.npmjs.org/{name}/-/{file}")
        digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        if digest != integrity:
            _refuse(path, f"sha512-{digest}", f"sha512-{integrity}")
        with tarfile.open(path) as archive:
            members = [each for each in archive.getmembers() if each.isfile()]
            return {each.name: _content(archive, each) for each in members}

    def file(self, name: str, url: str, sha256: str | None = None) -> Path:
        """Return a file at an address; print its sha256 where nobody has recorded it.

        Raises:
            SourceError: it cannot be downloaded, or has another hash.
        """
        path = self.folder / name
        if not path.exists():
            print(f"{name}: {url}")
            self.folder.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.part")
            try:
                with urllib.request.urlopen(url) as answer, part.open("wb") as out:
                    while block := answer.read(BLOCK):
                        out.write(block)
            except OSError as error:
                raise SourceError(
                    f"{url} cannot be downloaded: {error}. Bring the file yourself: {path}."
                ) from error
            part.rename(path)
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if sha256 is None:
            print(f"{name}: sha256 {digest}")
        elif digest != sha256:
            _refuse(path, digest, sha256)
        return path


def _refuse(path: Path, found: str, expected: str) -> NoReturn:
    raise SourceError(f"{path} has the hash {found}, expected {expected}: bring it again.")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _git(place: Path, *words: str, check: bool = True) -> str:
    done = subprocess.run(["git", "-C", place, *words], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise SourceError(f"git {' '.join(words)} failed in {place}: {done.stderr.strip()}")
    return done.stdout.strip()
