"""The files of an index: what is committed counts, and damage is named."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manyheads.errors import FolderError, ManyheadsError, NotFoundError, OutputError, UsageError
from manyheads.image_search.index_folder import (
    FORMAT_VERSION,
    Header,
    IndexedImage,
    IndexFolder,
    check_place,
    create,
    state_of,
)
from tests.cli.test_nothing_lost import full_disk

HEADER = Header(model="digits", weights="a" * 64, dim=3)
VECTORS = np.eye(3, dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An index of three images with two contents, and one content without an image."""
    path = tmp_path / "i"
    path.mkdir()
    create(path, HEADER)
    folder = IndexFolder(path, write=True)
    images = [IndexedImage(name, name, row) for name, row in (("a", 0), ("b", 1), ("a2", 0))]
    folder.commit(VECTORS, ["x", "y", "z"], images)
    folder.close()
    return path


def test_what_was_committed_is_read(path: Path) -> None:
    folder = IndexFolder(path)
    assert folder.header == HEADER
    assert (folder.rows, len(folder)) == (3, 3)
    assert folder.vectors().tolist() == VECTORS.tolist()
    assert folder.unused_rows().tolist() == [2]
    assert [each.name for each in folder.images_of([0, 2])[0]] == ["a", "a2"]
    assert folder.images_of([2]) == {2: []}
    assert (folder.row_of("y"), folder.row_of("?")) == (1, None)
    assert folder.image("b") == IndexedImage("b", "b", 1)
    assert folder.image("?") is None
    folder.close()


def test_an_empty_index(tmp_path: Path) -> None:
    """As a process leaves it that was killed after it had made it."""
    create(tmp_path, HEADER)
    folder = IndexFolder(tmp_path, write=True)
    assert (folder.rows, len(folder), folder.vectors().shape) == (0, 0, (0, 3))
    folder.commit(VECTORS[:1], ["x"], [IndexedImage("a", None, 0)])
    assert len(folder) == 1
    folder.close()


@pytest.mark.parametrize("tail", [b"1", b"12345678901", b"x" * 3000])
def test_a_tail_that_no_row_knows_is_cut_off(path: Path, tail: bytes) -> None:
    """Readers pass it over; who writes cuts it, and the next vector is where it belongs."""
    vectors = path / "vectors.f32"
    whole = vectors.read_bytes()
    vectors.write_bytes(whole + tail)
    folder = IndexFolder(path)
    assert folder.vectors().tolist() == VECTORS.tolist()
    folder.close()
    assert vectors.read_bytes() == whole + tail
    folder = IndexFolder(path, write=True)
    assert vectors.read_bytes() == whole
    folder.commit(VECTORS[:1], ["w"], [IndexedImage("w", None, 3)])
    folder.close()
    assert vectors.read_bytes() == whole + VECTORS[0].tobytes()


def test_an_open_index_sees_what_others_add(path: Path) -> None:
    reader, writer = IndexFolder(path), IndexFolder(path, write=True)
    with reader.snapshot() as first:
        assert reader.rows == 3
    with reader.snapshot() as same:
        assert same == first
    writer.commit(VECTORS[:1], ["w"], [IndexedImage("w", None, 3)], ["a"])
    with reader.snapshot() as version:
        assert version != first
        assert reader.vectors().shape == (4, 3)
        assert [each.name for each in reader.images_of([0])[0]] == ["a2"]
    reader.close()
    writer.close()


def test_a_commit_is_all_or_nothing(path: Path) -> None:
    """A content that is there already is refused, and its images and vectors with it."""
    before = (path / "vectors.f32").read_bytes()
    folder = IndexFolder(path, write=True)
    with pytest.raises(FolderError, match="UNIQUE"):
        folder.commit(VECTORS[:2], ["new", "x"], [IndexedImage("new", None, 3)], ["a"])
    assert folder.rows == 3
    assert folder.row_of("new") is None
    assert folder.image("new") is None
    assert folder.image("a") is not None
    folder.close()
    IndexFolder(path, write=True).close()
    assert (path / "vectors.f32").read_bytes() == before


def test_a_writer_that_another_has_overtaken(path: Path) -> None:
    """Where a file system has no locks: its rows are taken, so it must not write."""
    first, second = IndexFolder(path, write=True), IndexFolder(path, write=True)
    first.commit(VECTORS[:1], ["w"], [])
    with pytest.raises(UsageError, match="is in use: another process has added images"):
        second.commit(VECTORS[1:2], ["v"], [])
    assert first.row_of("v") is None
    first.close()
    second.close()
    assert (path / "vectors.f32").stat().st_size == 4 * 12


@pytest.mark.parametrize("size", [20, 40])
def test_a_full_disk(path: Path, size: int) -> None:
    """Nothing is lost, and with room it goes on."""
    folder = IndexFolder(path, write=True)
    with full_disk(size), pytest.raises(OutputError, match=r"vectors.f32 cannot be written"):
        folder.commit(VECTORS, ["1", "2", "3"], [])
    assert (path / "vectors.f32").read_bytes() == VECTORS.tobytes()
    folder.commit(VECTORS, ["1", "2", "3"], [])
    assert folder.vectors().shape == (6, 3)
    folder.close()


def test_names_that_are_not_utf8(path: Path) -> None:
    name = b"caf\xe9.png".decode(errors="surrogateescape")
    folder = IndexFolder(path, write=True)
    folder.commit(VECTORS[:0], [], [IndexedImage(name, name, 0)])
    assert folder.image(name) == IndexedImage(name, name, 0)
    assert name in folder.files()
    assert folder.names_in(name) == [name]
    folder.close()


# --- Damage -------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    with (path / "vectors.f32").open("r+b") as file:
        file.truncate(30)


def change(statement: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with sqlite3.connect(path / "images.sqlite") as database:
            database.executescript(statement)
        database.close()

    return run


def write(name: str, content: str) -> Callable[[Path], object]:
    return lambda path: (path / name).write_text(content)


def header(**changes: object) -> Callable[[Path], object]:
    return write("index.json", json.dumps(HEADER.model_dump() | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "has 30 bytes, and 3 vectors of 3 numbers take 36"),
        (lambda path: (path / "vectors.f32").unlink(), "it has no vectors.f32"),
        (lambda path: (path / "images.sqlite").unlink(), "it has no images.sqlite"),
        (write("images.sqlite", "not a database" * 100), "images.sqlite cannot be read: file is"),
        (write("images.sqlite", ""), "images.sqlite cannot be read: no such table"),
        (change("DELETE FROM vectors WHERE row = 1"), "images.sqlite lacks rows"),
        (change("UPDATE vectors SET row = -4 WHERE row = 2"), "images.sqlite lacks rows"),
        (change("UPDATE images SET row = 9 WHERE row = 1"), "images.sqlite lacks rows"),
        (change("UPDATE images SET row = 'x' WHERE row = 1"), "images.sqlite lacks rows"),
        (change("DROP TABLE images"), "images.sqlite cannot be read: no such table"),
        (header(dim=4), "has 36 bytes, and 3 vectors of 4 numbers take 48"),
        (header(dim=0), "index.json, dim: "),
        (header(dim="3"), "index.json, dim: "),
        (header(weights="abc"), "index.json, weights: "),
        (header(model=None), "index.json, model: "),
        (write("index.json", '{"format_version": 1}'), "index.json, model: Field required"),
        (write("index.json", "{"), r"index.json cannot be read: .* Copy the folder again"),
        (write("index.json", "[]"), "index.json has format_version None"),
        (header(format_version=FORMAT_VERSION + 1), r"has format_version 3; .* Update Manyheads"),
        (header(format_version=True), "index.json has format_version True"),
    ],
)
def test_a_damaged_index(path: Path, damage: Callable[[Path], object], message: str) -> None:
    """It is named when the index is opened, for reading and for writing, and nothing is changed."""
    damage(path)
    before = {each.name: each.read_bytes() for each in path.iterdir()}
    for for_writing in (False, True):
        with pytest.raises(FolderError, match=message):
            IndexFolder(path, write=for_writing)
    assert {each.name: each.read_bytes() for each in path.iterdir()} == before


@pytest.mark.parametrize("position", range(0, 12288, 1024))
def test_a_database_with_a_damaged_page(path: Path, position: int) -> None:
    """It is read, or refused; nothing else happens."""
    file = path / "images.sqlite"
    content = bytearray(file.read_bytes())
    content[position : position + 64] = b"\xa5" * 64
    file.write_bytes(content)
    try:
        folder = IndexFolder(path)
        try:
            folder.images_of([0, 1, 2])
            folder.unused_rows()
            folder.files()
        finally:
            folder.close()
    except ManyheadsError:
        pass


@pytest.mark.parametrize("name", ["", "a.txt"])
def test_a_folder_without_an_index(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFoundError, match="is no index of images: it"):
        IndexFolder(tmp_path / name)


# --- Where an index may be made -----------------------------------------------------------------


def test_where_an_index_may_be_made(path: Path, tmp_path: Path) -> None:
    assert check_place(path)
    assert not check_place(tmp_path / "new")
    (tmp_path / "mine").mkdir()
    assert not check_place(tmp_path / "mine")
    (tmp_path / "mine" / "a.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"is not empty, and no index: it has no index\.json"):
        check_place(tmp_path / "mine")
    with pytest.raises(UsageError, match="is a file"):
        check_place(tmp_path / "mine" / "a.txt")


def test_an_index_whose_making_was_killed(path: Path) -> None:
    """It has no vectors yet, and is made again; one with vectors is never written over."""
    (path / "index.json").unlink()
    with pytest.raises(UsageError, match="is not empty, and no index"):
        check_place(path)
    (path / "vectors.f32").write_bytes(b"")
    (path / ".manyheads-0123.part").write_text("{")
    assert not check_place(path)
    create(path, HEADER)
    folder = IndexFolder(path)
    assert len(folder) == 0
    folder.close()


# --- The state of a file ------------------------------------------------------------------------


def test_the_state_of_a_file_changes_with_it(tmp_path: Path) -> None:
    """Also if its times are set back; one that has just changed may change again unseen."""
    file = tmp_path / "a.png"
    file.write_bytes(b"1")
    os.utime(file, ns=(0, 0))
    changed = file.stat().st_ctime_ns
    assert state_of(str(file), changed + 1_000_000_000) is None
    before = state_of(str(file), changed + 3_000_000_000)
    assert before is not None
    assert state_of(str(file), changed + 4_000_000_000) == before
    while file.stat().st_ctime_ns == changed:
        file.write_bytes(b"2")
        os.utime(file, ns=(0, 0))
    assert state_of(str(file), changed + 9_000_000_000) != before
    assert state_of(str(tmp_path / "none"), 0) is None
