"""Data on other machines: read through fsspec by names like s3://bucket/train, and kept on disk."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from manyheads.errors import DataError, NotFoundError, UsageError, optional_import
from manyheads.files import write_text, writing
from manyheads.project.cache_folder import cache_folder
from manyheads.project.lock import locked
from manyheads.strict_json import dumps

# Protocols of storage. Others of fsspec render templates, open archives or run commands.
PROTOCOLS = (
    *("abfs", "abfss", "az", "file", "ftp", "gcs", "gs", "hdfs", "hf", "http", "https", "local"),
    *("memory", "oci", "oss", "s3", "s3a", "sftp", "smb", "ssh", "webdav", "webhdfs"),
)
BLOCK = 1 << 22
_HASHES = ("etag", "contentmd5", "digest", "sha", "generation")
_TIMES = ("created", "mtime", "updated", "lastmodified", "modified", "modificationtime", "modify")
_VERSION = frozenset((*_HASHES, *_TIMES, "size"))  # names of what changes with a file's content


def is_remote(name: str | None) -> bool:
    """Tell whether a name begins with a protocol, such as s3://."""
    return name is not None and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name) is not None


def local_path(name: str) -> str:
    """Return the path that an address of this machine (file://, local://) has; else the name."""
    return re.sub(r"^(file|local)://", "", name, flags=re.IGNORECASE)


def fetch_remote(name: str, suffixes: Sequence[str]) -> list[Path]:
    """Copy a remote data set to this machine, unless it is here; return its path, or paths.

    Args:
        name: of a file, a folder, a pattern with *, or what several files' names begin with.
        suffixes: endings of these files, such as (".en", ".de"); "" is the name itself.

    Raises:
        MissingExtraError: fsspec is not installed.
        UsageError: the protocol is none of `PROTOCOLS`, or its package is not installed.
        NotFoundError: there is no such file.
        DataError: it cannot be read.
    """
    protocol = name.partition("://")[0].lower()
    if protocol not in PROTOCOLS or "::" in name:
        raise UsageError(
            f"{name!r:.200} cannot be read: an address has one protocol, without `::`. Protocols: "
            f"{', '.join(PROTOCOLS)}. Copy the data to one of these, or to this machine."
        )
    with optional_import("fsspec", extra="remote"):
        import fsspec
    try:
        system, path = fsspec.core.url_to_fs(name)
    except ImportError as error:
        raise UsageError(f"{name!r} cannot be read: {error}. With pip: {_command(error)}") from None
    except ValueError as error:
        raise UsageError(f"{name!r} cannot be read: {error}.") from None
    try:
        folder = _folder(name)
        with locked(folder, "copies", wait=True):  # the ranks of a host ask for the same
            return _fetch(system, name, path, suffixes, folder)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{name!r} cannot be read: {type(error).__name__}: {error}. Check the name, the "
            "network, and that you may read it."
        ) from error


def _command(error: ImportError) -> str:
    """Return what installs the packages that fsspec asks for: "a" and "b", or: install a."""
    quoted = re.findall(r'"([\w.-]+)"', str(error))
    found = quoted or re.findall(r"[Ii]nstall (?:the )?([\w.-]+)", str(error))
    return f"pip install {' '.join(found) or 'the package named above'}"


def _fetch(system: Any, name: str, path: str, suffixes: Sequence[str], folder: Path) -> list[Path]:
    if "*" in path:
        found = [each for each in sorted(system.glob(path)) if system.isfile(each)]
        if not found:
            raise NotFoundError(f"There is no data {name!r}: nothing has such a name.")
        beside = _beside(path)
        return [_copy(system, each, folder / _below(beside, each)) for each in found]
    stem = folder / path.rstrip("/").rpartition("/")[2]
    if "" in suffixes and system.isdir(path):
        copies = [_copy(system, each, stem / _below(path, each)) for each in system.find(path)]
        _remove_others(stem, copies)
        return [stem]
    if "" in suffixes and system.exists(path):
        return [_copy(system, path, stem)]
    places = {
        suffix: next((p for p in (f"{path}{suffix}", f"{path}{suffix}.gz") if system.exists(p)), "")
        for suffix in filter(None, suffixes)
    }
    if missing := [suffix for suffix, place in places.items() if not place]:
        raise NotFoundError(f"There is no data {name!r}: looked for {name}{missing[0]}.")
    if not places:
        raise NotFoundError(f"There is no data {name!r}.")
    for place in places.values():
        _copy(system, place, folder / place.rpartition("/")[2])
    return [stem]


def _folder(name: str) -> Path:
    """Return the folder of copies of what lies beside a remote file, or where a pattern begins."""
    return cache_folder() / "remote" / hashlib.sha256(_beside(name).encode()).hexdigest()[:16]


def _beside(name: str) -> str:
    """Return the folder that holds a file, or everything that a pattern may match."""
    return name.rstrip("/").partition("*")[0].rpartition("/")[0]


def _below(folder: str, place: str) -> str:
    """Return the path of a remote file from a folder that it is in."""
    return place.removeprefix(folder.rstrip("/")).lstrip("/")


def _remove_others(folder: Path, copies: Iterable[Path]) -> None:
    """Remove copies of what has been removed from a remote folder."""
    kept = {path for copy in copies for path in (copy, _origin(copy))}
    for path in sorted(folder.rglob("*"), reverse=True):  # what is in a folder comes before it
        if path.is_dir():
            with suppress(OSError):  # something is in it
                path.rmdir()
        elif path not in kept:
            path.unlink()


def _copy(system: Any, place: str, local: Path) -> Path:
    """Copy a file, unless the copy is of what is there now."""
    if ".." in local.parts:
        raise DataError(f"{place!r} is not copied: its name leads out of the folder of copies.")
    state = _version(system.info(place))
    noted = _origin(local)
    if local.exists() and noted.exists() and noted.read_text(encoding="utf-8") == state:
        return local
    noted.unlink(missing_ok=True)
    with system.open(place, "rb") as source, writing(local) as target:
        while block := source.read(BLOCK):
            target.write(block)
    write_text(noted, state)
    return local


def _origin(local: Path) -> Path:
    return local.with_name(f".{local.name}.origin")


def _version(info: Mapping[str, Any]) -> str:
    """Describe a file by what changes with its content, whatever its file system calls that."""
    told = {re.sub(r"[-_]", "", key).lower(): str(value) for key, value in info.items()}
    known = {key: value for key, value in told.items() if key in _VERSION}
    # Of an address, the place that it leads to may change with each question.
    others = {key: value for key, value in told.items() if key not in ("name", "url")}
    return dumps(dict(sorted((known if known.keys() - {"size"} else others).items())))
