"""Data on other machines, here in fsspec's own memory."""

import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manyheads.app.project import remote
from manyheads.app.project.paths import find_data
from manyheads.errors import MissingExtraError, NotFoundError, UsageError
from tests.made import TRANSLATE, run, write_numbers

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty file system, and an empty folder of copies."""
    monkeypatch.setenv(remote.CACHE, str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def test_a_file_is_copied_once_and_again_when_it_changes(memory: Any) -> None:
    memory.pipe("/data/a.tsv", b"one\teins\n")
    (first,) = find_data("memory://data/a.tsv", None)
    assert first.name == "a.tsv"
    assert first.read_bytes() == b"one\teins\n"
    before = first.stat().st_mtime_ns
    assert find_data("a.tsv", "memory://data") == [first]
    assert first.stat().st_mtime_ns == before
    memory.pipe("/data/a.tsv", b"two\tzwei\n")
    assert find_data("memory://data/a.tsv", None)[0].read_bytes() == b"two\tzwei\n"


def test_patterns_folders_and_sides(memory: Any) -> None:
    for name in ("s/1.tar", "s/2.tar", "f/left/1.png", "t/train.en", "t/train.de.gz"):
        memory.pipe(f"/{name}", name.encode())
    assert [p.name for p in find_data("memory://s/*.tar", None)] == ["1.tar", "2.tar"]
    (folder,) = find_data("memory://f", None)
    assert (folder / "left" / "1.png").read_bytes() == b"f/left/1.png"
    (stem,) = find_data("memory://t/train", None, (".en", ".de"))
    assert Path(f"{stem}.en").exists()
    assert Path(f"{stem}.de.gz").exists()


def test_what_is_not_there(memory: Any) -> None:
    wanted = (("memory://x", ("",)), ("memory://*.tar", ("",)), ("memory://x", (".en",)))
    for name, suffixes in wanted:
        with pytest.raises(NotFoundError, match="There is no data"):
            find_data(name, None, suffixes)
    with pytest.raises(UsageError, match=r"Protocols: .*memory"):
        find_data("carrier-pigeon://x", None)


def test_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *given: Any, **named: Any) -> Any:
        if name == "fsspec":
            raise ImportError(name)
        return real(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[remote\]'"):
        find_data("s3://bucket/train", None)


def test_a_recipe_trains_on_remote_text(memory: Any, tmp_path: Path) -> None:
    write_numbers(tmp_path)
    for path in (tmp_path / "numbers").iterdir():
        memory.pipe(f"/far/numbers/{path.name}", path.read_bytes())
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        TRANSLATE.replace("[data]", "[data]\nroot = 'memory://far'"), encoding="utf-8"
    )
    line = run(recipe, tmp_path / "run", "train.steps=2")
    assert line["data"]
