"""Bring the public corpora of the recipes under the data root, with checksums."""

import gzip
import shutil
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple, cast

from manyheads.data.text.public_corpora import CorpusFile, PublicCorpus, public_corpora
from manyheads.errors import DataError, NotFoundError, UsageError, nearest
from manyheads.files import sha256, writing

Say = Callable[[str], object]

TIMEOUT = 60  # seconds without an answer


class Fetched(NamedTuple):
    """Numbers of files that were fetched, and that were there."""

    folder: Path
    brought: int
    present: int


def find_public(name: str) -> PublicCorpus:
    """Return a public corpus of the recipes by its name."""
    known = public_corpora()
    if name not in known:
        raise NotFoundError(
            f"There is no public corpus {name!r}{nearest(name, known)}Known: {', '.join(known)}."
        )
    return known[name]


def fetch(
    corpus: PublicCorpus, root: Path, *, folder: Path | None = None, say: Say = str
) -> Fetched:
    """Bring a corpus under `root`: from a local folder, or from its home.

    Each file gets its name when it is complete and its checksum is right. An interrupted download
    is continued. A folder may be laid out as under a data root, or as at the corpus's home. `say`
    is told what is done; by default nobody is.

    Raises:
        UsageError: neither a folder nor a home to download from.
        NotFoundError: the folder does not exist or lacks a file.
        DataError: a wrong checksum, or the download failed.
    """
    url = corpus.url
    if folder is None and url is None:
        raise UsageError(
            f"{corpus.name} is not published in the form that the recipes read (its home: "
            f"{corpus.home}). {corpus.how} If you have the files, name their folder: `folder`."
        )
    if folder is not None and not folder.is_dir():
        raise NotFoundError(f"There is no folder {folder} to take {corpus.name} from.")
    brought = present = 0
    for file in corpus.files:
        path = root / file.path
        if path.exists():
            _verify(path, file, path)
            present += 1
            continue
        if folder is not None:
            say(f"copying {file.path}")
            _copy(_find(file, folder, corpus.name), file, path)
        else:
            assert url is not None
            say(f"downloading {file.path}, {file.bytes / 1e6:.1f} MB")
            _download(f"{url}{file.at}", file, path)
        brought += 1
    return Fetched(root / corpus.name, brought, present)


def _find(file: CorpusFile, folder: Path, name: str) -> Path:
    """Find a file in a folder laid out as a data root, as the corpus in it, or as at its home."""
    inside = file.path.removeprefix(f"{name}/")
    candidates = [folder / path for path in (file.path, inside, file.at) if path]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = ", ".join(map(str, candidates))
    raise NotFoundError(f"{folder} does not hold {file.path}: looked for {looked}.")


def _copy(source: Path, file: CorpusFile, path: Path) -> None:
    with writing(path) as out:
        if source.suffix == ".gz":
            _unpack(source, out)
        else:
            with source.open("rb") as content:
                shutil.copyfileobj(content, out)
        out.flush()
        _verify(Path(out.name), file, source)


def _unpack(source: Path, plain: IO[bytes]) -> None:
    """Unpack text, without the spaces that some lines of the published files begin or end with."""
    try:
        with cast(IO[bytes], gzip.open(source)) as packed:
            plain.writelines(line.strip(b" \n") + b"\n" for line in packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{source} cannot be unpacked ({error}): it is cut off or damaged. Bring it again."
        ) from error


def _download(url: str, file: CorpusFile, path: Path) -> None:
    """Download to a name of its own, which stays when interrupted and is continued."""
    packed = ".gz" if url.endswith(".gz") else ""
    download = path.with_name(f".manyheads-{path.name}.download{packed}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        for block in _blocks(url, download):
            with download.open("ab") as out:
                out.write(block)
    except (OSError, HTTPException) as error:  # no network, no such page, a broken connection
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"{url} cannot be downloaded: {reason}. Try again, and it goes on where it stopped; "
            "or bring the files yourself and name their folder: `folder`."
        ) from error
    try:
        _copy(download, file, path)
    finally:
        download.unlink()  # complete, so either good and copied or wrong


def _blocks(url: str, download: Path) -> Iterator[bytes]:
    have = download.stat().st_size if download.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is missing
            return
        raise
    with answer:
        if have and answer.status != 206:  # the server begins again
            download.unlink()
        while block := answer.read(1 << 18):
            yield block
        if answer.length:
            raise ConnectionError(f"the answer ended {answer.length:,} bytes too early")


def _verify(path: Path, file: CorpusFile, source: Path) -> None:
    digest = sha256(path)
    if digest != file.sha256:
        again = "Nothing was written; its home may have changed, or the copy is damaged."
        if source == path:
            again = "Move it away to have it brought again."
        raise DataError(
            f"{source} is not the {file.path} of the recipes: its sha256 is {digest}, expected "
            f"{file.sha256}. {again}"
        )
