"""An index on disk: a folder with vectors, what they are vectors of, and of which model.

    index.json      format_version, the model, the sha256 of its weights, the length of a vector
    vectors.f32     (row, dim) float32, little-endian, appended to and never changed
    images.sqlite   `vectors`: the sha256 of the image file, with words of its name where they
                    count, that a row was made of;
                    `images`: the name of each image, its row, and the state of its file

An image whose content changes gets another row, and the old one is excluded from searches; it is
used again if the content comes back. What counts is what images.sqlite has committed: vectors are
flushed to disk before their rows are, so a process that is killed leaves at most a tail of
vectors.f32 that no row knows, and the next one that writes cuts it off.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from manyheads.data.text.encoding import is_valid_unicode
from manyheads.errors import FolderError, NotFoundError, UsageError
from manyheads.files import append_bytes, cannot_write, flush, output_errors
from manyheads.project.folder import read_versioned, validated, write_json
from manyheads.project.lock import LOCK

FORMAT_VERSION = 2  # of an index with names
WITHOUT_NAMES = 1  # which earlier versions read
HEADER, VECTORS, IMAGES = "index.json", "vectors.f32", "images.sqlite"
AGAIN = "Copy the folder again; or remove it, and index the images anew."
PATIENCE = 30.0  # seconds that a reader waits while a writer commits, and the reverse
TYPE = np.dtype("<f4")
TICK = 2_000_000_000  # nanoseconds between the times that a file system can tell apart, at most
AT_ONCE = 500  # rows in one query of the database
SCHEMA = Path(__file__).with_name("images.sql").read_text("utf-8")  # of images.sqlite


class Header(BaseModel):
    """What index.json must have."""

    model_config = ConfigDict(frozen=True, strict=True)

    format_version: int = WITHOUT_NAMES
    model: str  # the name of a shipped model, or the path of a folder
    weights: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # sha256 of model.safetensors
    dim: Annotated[int, Field(ge=1, le=1 << 20)]  # of a vector
    names: bool = False  # whether vectors are of images and of the words of their names


class IndexedImage(NamedTuple):
    """An image of an index."""

    name: str
    file: str | None
    row: int
    label: str | None = None
    state: str | None = None


class IndexFolder:
    """An open index; one process may write, any number may read."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        """Open an index; for writing only while `project.lock.locked` holds the folder.

        Raises:
            NotFoundError: there is no index.
            FolderError: it is damaged, incomplete, or of a later version.
        """
        self.path = path
        self.header = read_header(path)
        for name in (VECTORS, IMAGES):
            if not (path / name).is_file():
                raise self.damaged(f"it has no {name}")
        with self._errors():
            # Not made anew if it is missing; read only where the user may not write.
            address = f"{(path / IMAGES).absolute().as_uri()}?mode=rw"
            self._database = sqlite3.connect(
                address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        self._mapped = np.zeros((0, self.header.dim), dtype=TYPE)
        try:
            with self.snapshot(), self._errors():
                rows, first = self._one("SELECT count(*), min(row) FROM vectors")
                unknown = "SELECT count(*) FROM images WHERE row NOT BETWEEN 0 AND ?"
                if rows != self.rows or first or self._one(unknown, rows - 1) != (0,):
                    raise self.damaged(f"{IMAGES} lacks rows")
                self.vectors()
            if write:
                with self._errors(write=True):
                    self._database.execute("PRAGMA synchronous = FULL")  # some have another
                append_bytes(path / VECTORS, b"", behind=self.rows * self._bytes)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return int(self._one("SELECT count(*) FROM images")[0])

    @property
    def _bytes(self) -> int:
        return self.header.dim * TYPE.itemsize

    def close(self) -> None:
        """Close the files."""
        self._database.close()

    # --- Reading --------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[int]:
        """Read one state of the index, whatever is added meanwhile; yield the version of it.

        The version changes when another process, or another `IndexFolder`, has changed the index.
        """
        with self._errors():
            self._database.execute("BEGIN")
        try:
            self.rows = self._next_row()
            yield int(self._one("PRAGMA data_version")[0])
        finally:
            with self._errors():
                self._database.execute("ROLLBACK")

    def vectors(self) -> np.ndarray:
        """Map the vectors into memory: (row, dim) float32.

        Raises:
            FolderError: there are fewer than the database knows.
        """
        if len(self._mapped) != self.rows:
            path = self.path / VECTORS
            size = path.stat().st_size
            if size < self.rows * self._bytes:
                raise self.damaged(
                    f"{VECTORS} has {size:,} bytes, and {self.rows:,} vectors of "
                    f"{self.header.dim} numbers take {self.rows * self._bytes:,}"
                )
            # An empty file cannot be mapped; it is never asked for.
            self._mapped = np.memmap(path, TYPE, "r", shape=(self.rows, self.header.dim))
        return self._mapped

    def unused_rows(self) -> np.ndarray:
        """List the rows of contents that no image has any more."""
        rows = self._query("SELECT row FROM vectors EXCEPT SELECT row FROM images")
        return np.array([row for (row,) in rows], dtype=np.int64)

    def images_of(self, rows: Sequence[int]) -> dict[int, list[IndexedImage]]:
        """List the images of some rows: those with the same content share one."""
        images: dict[int, list[IndexedImage]] = {row: [] for row in rows}
        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            marks = ", ".join("?" * len(part))
            for image in self._select(f"WHERE row IN ({marks}) ORDER BY name", *part):
                images[image.row].append(image)
        return images

    def image(self, name: str) -> IndexedImage | None:
        """Find an image by its name."""
        return next(iter(self._select("WHERE name = ?", _stored(name))), None)

    def names_in(self, file: str) -> list[str]:
        """List the images that a file holds."""
        return [image.name for image in self._select("WHERE file = ?", _stored(file))]

    def files(self) -> list[str]:
        """List the files that hold images."""
        files = self._query("SELECT DISTINCT file FROM images WHERE file NOT NULL")
        return [str(_given(file)) for (file,) in files]

    def row_of(self, sha256: str) -> int | None:
        """Find the row that was made of a content."""
        rows = self._query("SELECT row FROM vectors WHERE sha256 = ?", sha256)
        return next((int(row) for (row,) in rows), None)

    # --- Writing --------------------------------------------------------------------------------

    def commit(
        self,
        vectors: np.ndarray | Sequence[np.ndarray],
        contents: Sequence[str],
        images: Iterable[IndexedImage],
        removed: Iterable[str] = (),
    ) -> None:
        """Add vectors and change images, all or nothing.

        Args:
            vectors: (vector, dim); they get the rows from `self.rows` on.
            contents: the sha256 of what each was made of.
            images: to add, or to write over those of the same names.
            removed: the names of images that are there no more.

        Raises:
            OutputError: it cannot be written; the index is as it was before.
        """
        with self._errors(write=True):
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # commits, or rolls back
                if self._next_row() != self.rows:  # the lock of the folder did not hold
                    raise UsageError(f"{self.path} is in use: another process has added images.")
                if len(vectors):
                    content = np.asarray(vectors, dtype=TYPE).tobytes()
                    append_bytes(self.path / VECTORS, content, behind=self.rows * self._bytes)
                run = self._database.executemany
                run("INSERT INTO vectors VALUES (?, ?)", enumerate(contents, self.rows))
                run("DELETE FROM images WHERE name = ?", ((_stored(name),) for name in removed))
                stored = (tuple(map(_stored, image)) for image in images)
                run("REPLACE INTO images VALUES (?, ?, ?, ?, ?)", stored)
        self.rows += len(vectors)

    # --- The database ---------------------------------------------------------------------------

    def _query(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._database.execute(query, parameters).fetchall()

    def _one(self, query: str, *parameters: object) -> tuple[Any, ...]:
        return self._query(query, *parameters)[0]

    def _next_row(self) -> int:
        return int(self._one("SELECT coalesce(max(row), -1) + 1 FROM vectors")[0])

    def _select(self, where: str, *parameters: object) -> list[IndexedImage]:
        images = []
        rows = self._query(f"SELECT name, file, row, label, state FROM images {where}", *parameters)
        with self._errors():  # values of any type
            for values in rows:
                name, file, row, label, state = map(_given, values)
                others = (file, label, state)
                if type(row) is not int or any(type(e) not in (str, NoneType) for e in others):
                    raise TypeError(f"{name!r:.80} is no image")
                images.append(IndexedImage(str(name), file, row, label, state))
        return images

    def damaged(self, reason: str) -> FolderError:
        """Return the error about an index that cannot be used."""
        return FolderError(f"The index {self.path} is damaged: {reason}. {AGAIN}")

    @contextmanager
    def _errors(self, *, write: bool = False) -> Iterator[None]:
        """Turn errors of the database into those of the folder."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if kind == sqlite3.SQLITE_BUSY:
                raise UsageError(
                    f"{self.path} is in use: another process writes to it. Try again later."
                ) from error
            if write and kind in (
                sqlite3.SQLITE_FULL,
                sqlite3.SQLITE_IOERR,
                sqlite3.SQLITE_READONLY,
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_PERM,
            ):
                raise cannot_write(self.path / IMAGES, str(error)) from error
            raise self.damaged(f"{IMAGES} cannot be read: {error}") from error
        except (OverflowError, TypeError, ValueError, UnicodeError) as error:  # values of any type
            raise self.damaged(f"{IMAGES} holds other values than an index: {error}") from error


def _stored(value: Any) -> Any:
    """Return a value as the database has it: names that are not UTF-8 as bytes."""
    if isinstance(value, str) and not is_valid_unicode(value):
        return value.encode(errors="surrogateescape")
    return value


def _given(value: Any) -> Any:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def read_header(path: Path) -> Header:
    """Read index.json.

    Raises:
        NotFoundError: there is no index.
        FolderError: it is damaged, or of a later version.
    """
    if not (path / HEADER).is_file():
        there = "has no index.json" if path.is_dir() else "is not there"
        raise NotFoundError(
            f"{path} is no index of images: it {there}. Make one with `manyheads index`, or "
            "in Python with `manyheads.index`."
        )
    stored = read_versioned(path / HEADER, FORMAT_VERSION, AGAIN)
    return validated(Header, stored, path / HEADER, AGAIN)


def check_place(path: Path) -> bool:
    """Tell whether a folder is an index; refuse one with anything else in it.

    Raises:
        UsageError: it is a file, or a folder of something else.
    """
    if (path / HEADER).is_file():
        return True
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file. Choose another `out`.")
    if not path.exists():
        return False
    # What a process leaves that was killed while it made the index; it holds no vector yet.
    own = {LOCK, VECTORS, IMAGES, f"{IMAGES}-journal"}
    others = {each.name for each in path.iterdir()} - own
    begun = (path / VECTORS).exists() and (path / VECTORS).stat().st_size
    if begun or not all(each.startswith(".manyheads-") for each in others):
        raise UsageError(
            f"{path} is not empty, and no index: it has no {HEADER}. Choose another `out`."
        )
    return False


def create(path: Path, header: Header) -> None:
    """Make an index without images in a folder that `check_place` allows; index.json comes last.

    Raises:
        OutputError: it cannot be written.
    """
    with output_errors(path):
        for name in (VECTORS, IMAGES, f"{IMAGES}-journal"):
            (path / name).unlink(missing_ok=True)
        (path / VECTORS).touch()
    try:
        with closing(sqlite3.connect(path / IMAGES, isolation_level=None)) as database:
            database.executescript(SCHEMA)
    except sqlite3.DatabaseError as error:
        raise cannot_write(path / IMAGES, str(error)) from error
    with output_errors(path):
        flush(path / IMAGES)
        write_json(path / HEADER, json.loads(header.model_dump_json()))
        flush(path)


def state_of(path: str, now_ns: int) -> str | None:
    """Describe a file so that a change is seen without reading it: its size and times.

    `ctime` is set by the system at every change of the content and cannot be set by programs. None
    if the file was changed less than TICK ago: the clock of a file system is coarse, and a later
    change could leave the same times. None on Windows, too, where `ctime` is another time.
    """
    if os.name == "nt":
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - as fast as possible, for each image
    except OSError:
        return None
    if found.st_ctime_ns > now_ns - TICK:
        return None
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
