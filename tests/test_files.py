"""The one writer: whole or not at all, and never over an input."""

import errno
import json
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from manyheads.errors import OutputError, UsageError
from manyheads.files import (
    append_line,
    expand_user,
    new_folder,
    reject_inputs,
    remove_unfinished,
    write_atomically,
    write_text,
    writing,
)


@contextmanager
def full_disk(size: int = 1000) -> Iterator[None]:
    """No file may become larger: what a full disk is to whoever writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# --- Writing ------------------------------------------------------------------------------------


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Replaced in one move, and nothing else is left behind."""
    path = tmp_path / "file.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [found.name for found in tmp_path.iterdir()] == ["file.json"]


@pytest.mark.parametrize("there", [True, False])
def test_of_a_symbolic_link_the_target_is_written(tmp_path: Path, there: bool) -> None:
    """It stays a link; the new file has nothing beside it."""
    (tmp_path / "a").mkdir()
    target = tmp_path / "a" / "target"
    if there:
        target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("a/target")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [found.name for found in target.parent.iterdir()] == ["target"]


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    """And is not replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"new")
    assert pipe.is_fifo()
    assert os.read(reader, 9) == b"new"
    os.close(reader)


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the old file stays, the new one goes."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="file cannot be written: no space left on device"):
        write_atomically(tmp_path / "file", b"new")
    assert {found.name: found.read_bytes() for found in tmp_path.iterdir()} == {"file": b"old"}


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    """What was there stays, whether the content is one piece or several; the path is named."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    large = r"file cannot be written: file too large\. What"
    with full_disk(), pytest.raises(OutputError, match=large):
        write_atomically(path, bytes(2000))
    with full_disk(), pytest.raises(OutputError, match=large), writing(path) as file:
        file.writelines(bytes(1000) for _ in range(20))
    with full_disk(), pytest.raises(OutputError, match=large), new_folder(tmp_path / "o") as folder:
        write_atomically(folder / "file", bytes(2000))
    assert {found.name: found.read_bytes() for found in tmp_path.iterdir()} == {"file": b"old"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_device() -> None:
    """It is written into as it is, and says so."""
    with pytest.raises(OutputError, match="/dev/full cannot be written: no space left on device"):
        write_atomically("/dev/full", b"new")


def test_an_error_in_the_block_is_its_own(tmp_path: Path) -> None:
    """Reading may fail as well: that is not about the file that is written."""
    with pytest.raises(FileNotFoundError, match="none"), writing(tmp_path / "file") as file:
        file.write((tmp_path / "none").read_bytes())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_permissions_are_kept(tmp_path: Path, mode: int) -> None:
    """A new file gets what any other program would give it."""
    path, other = tmp_path / "file", tmp_path / "other"
    write_atomically(path, b"")
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(mode)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_where_nothing_may_be_written(tmp_path: Path) -> None:
    """A file in place of a folder, a folder in place of a file, a link that leads to itself."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file/below", "folder", "loop"):
        with pytest.raises(OutputError, match=f"{name} cannot be written"):
            write_atomically(tmp_path / name, b"")
    with (
        pytest.raises(OutputError, match="below cannot be written"),
        new_folder(tmp_path / "file" / "below"),
    ):
        pass
    assert (tmp_path / "loop").is_symlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_is_write_protected(tmp_path: Path) -> None:
    """A file, or its folder."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o400)
    with pytest.raises(OutputError, match="permission denied"):
        write_atomically(path, b"new")
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="permission denied"):
        write_atomically(tmp_path / "other", b"new")
    tmp_path.chmod(0o700)
    assert path.read_bytes() == b"old"


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    """The temporary file's own name is short."""
    write_atomically(tmp_path / ("n" * 255), b"new")


def test_names_of_others_are_left_alone(tmp_path: Path) -> None:
    """Only what has our own ending of unfinished files is removed."""
    kept = ["file.part", ".file.123.part", "file.tmp", "partial-1"]
    for name in (*kept, ".manyheads-0123.part"):
        (tmp_path / name).write_text("mine")
    with writing(tmp_path / "file"):
        remove_unfinished(tmp_path / "none")
    remove_unfinished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "file"}


def test_a_line_is_added_whole_or_not_at_all(tmp_path: Path) -> None:
    """Half a line would make the log unreadable."""
    path = tmp_path / "log.jsonl"
    append_line(path, "one")
    with pytest.raises(OutputError, match=r"log\.jsonl cannot be written"), full_disk():
        append_line(path, "two" * 1000)
    append_line(path, "three")
    assert path.read_text() == "one\nthree\n"


def test_names_that_are_not_utf_8_in_json(tmp_path: Path) -> None:
    """They are read back as they were."""
    text = json.dumps({"path": "Gru\udcdf.png", "label": "고양이"}, ensure_ascii=False)
    write_text(tmp_path / "a.json", text)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == json.loads(text)


# --- Inputs -------------------------------------------------------------------------------------


def other_spelling(path: Path) -> Path:
    return path.parent / "folder" / ".." / path.name


def symbolic(path: Path) -> Path:
    link = path.with_name("symbolic")
    link.symlink_to(path.name)
    return link


def hard(path: Path) -> Path:
    link = path.with_name("hard")
    link.hardlink_to(path)
    return link


@pytest.mark.parametrize("spell", [Path, other_spelling, symbolic, hard])
def test_an_input_is_not_written_over(tmp_path: Path, spell: Callable[[Path], Path]) -> None:
    """Whatever it is called: itself, in a folder that is read, or as an open file."""
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    path = tmp_path / "file"
    path.write_text("mine")
    (tmp_path / "folder" / "deep" / "linked").hardlink_to(path)
    output = spell(path)
    with path.open() as file:
        for given in (path, str(path), tmp_path / "folder", tmp_path, file.fileno()):
            with pytest.raises(UsageError, match="would be written over, but it is read from"):
                reject_inputs(output, [None, "no such file", given])
    reject_inputs(output, [None, "no such file", "", "a\0b", Path(__file__)])


def test_what_is_no_file_may_be_read_and_written(tmp_path: Path) -> None:
    """A device; and a new file replaces nothing."""
    reject_inputs(Path(os.devnull), [os.devnull])
    reject_inputs(tmp_path / "new", [tmp_path / "new", tmp_path])


def test_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a user who does not exist there is none: then it is a name like others."""
    monkeypatch.setenv("HOME", "/home/me")
    assert expand_user("~/a") == Path("/home/me/a")
    assert expand_user("~nosuchuser/a") == Path("~nosuchuser/a")
