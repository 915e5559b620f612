"""Data on other machines: read through fsspec by names like s3://bucket/train, and kept on disk."""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from manyheads.errors import DataError, MissingExtraError, NotFoundError, UsageError
from manyheads.files import write_text, writing

CACHE = "MANYHEADS_CACHE"  # the folder of copies; ~/.cache/manyheads if not set
BLOCK = 1 << 22


def is_remote(name: str | None) -> bool:
    """Tell whether a name begins with a protocol, such as s3://."""
    return name is not None and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name) is not None


def fetch_remote(name: str, suffixes: Sequence[str]) -> list[Path]:
    """Copy a remote data set to this machine, unless it is here; return its path, or paths.

    Args:
        name: of a file, a folder, a pattern with *, or what several files' names begin with.
        suffixes: endings of these files, such as (".en", ".de"); "" is the name itself.

    Raises:
        MissingExtraError: fsspec is not installed.
        UsageError: the protocol is unknown, or its package is not installed.
        NotFoundError: there is no such file.
        DataError: it cannot be read.
    """
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError(package="fsspec", extra="remote") from None
    try:
        system, path = fsspec.core.url_to_fs(name)
    except ImportError as error:
        raise UsageError(f"{name!r} cannot be read: {error}. With pip: {_command(error)}") from None
    except ValueError as error:
        known = ", ".join(sorted(fsspec.available_protocols()))
        raise UsageError(f"{name!r} cannot be read: {error}. Protocols: {known}.") from None
    try:
        return _fetch(system, name, path, suffixes)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{name!r} cannot be read: {type(error).__name__}: {error}. Check the name, the "
            "network, and that you may read it."
        ) from error


def _command(error: ImportError) -> str:
    found = re.search(r"[Ii]nstall ([\w.-]+)", str(error))
    return f"pip install {found[1] if found else 'the package named above'}"


def _fetch(system: Any, name: str, path: str, suffixes: Sequence[str]) -> list[Path]:
    folder = _folder(name)
    if "*" in path.rpartition("/")[2]:
        found = [each for each in sorted(system.glob(path)) if system.isfile(each)]
        if not found:
            raise NotFoundError(f"There is no data {name!r}: nothing has such a name.")
        return [_copy(system, each, folder / each.rpartition("/")[2]) for each in found]
    stem = folder / path.rstrip("/").rpartition("/")[2]
    if "" in suffixes and system.isdir(path):
        for each in system.find(path):
            _copy(system, each, stem / each.removeprefix(path.rstrip("/")).lstrip("/"))
        return [stem]
    if "" in suffixes and system.exists(path):
        return [_copy(system, path, stem)]
    appended = [suffix for suffix in suffixes if suffix]
    places = {each: _first(system, (f"{path}{each}", f"{path}{each}.gz")) for each in appended}
    if missing := [suffix for suffix, place in places.items() if place is None]:
        raise NotFoundError(f"There is no data {name!r}: looked for {name}{missing[0]}.")
    if not places:
        raise NotFoundError(f"There is no data {name!r}.")
    for place in places.values():
        _copy(system, str(place), folder / str(place).rpartition("/")[2])
    return [stem]


def _folder(name: str) -> Path:
    """Return the folder of copies of what lies beside a remote file."""
    base = Path(os.environ.get(CACHE) or Path.home() / ".cache" / "manyheads")
    beside = name.rstrip("/").rpartition("/")[0]
    return base / "remote" / hashlib.sha256(beside.encode()).hexdigest()[:16]


def _first(system: Any, places: Iterable[str]) -> str | None:
    return next((place for place in places if system.exists(place)), None)


def _copy(system: Any, place: str, local: Path) -> Path:
    """Copy a file, unless the copy is of what is there now."""
    if ".." in local.parts:
        raise DataError(f"{place!r} is not copied: its name leads out of the folder of copies.")
    state = str(system.ukey(place))
    noted = local.with_name(f".{local.name}.origin")
    if local.exists() and noted.exists() and noted.read_text(encoding="utf-8") == state:
        return local
    noted.unlink(missing_ok=True)
    with system.open(place, "rb") as source, writing(local) as target:
        while block := source.read(BLOCK):
            target.write(block)
    write_text(noted, state)
    return local
