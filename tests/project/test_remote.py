"""Data on other machines, here in fsspec's own memory."""

import builtins
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from manyheads.comparison import compare
from manyheads.doctor.diagnose import diagnose
from manyheads.engine_export import export
from manyheads.errors import MissingExtraError, NotFoundError, UsageError
from manyheads.measure.stored_model import evaluate
from manyheads.project import paths, remote
from manyheads.project.cache_folder import CACHE
from manyheads.project.paths import allow
from manyheads.project.paths import find_data as find_allowed
from manyheads.project.remote import PROTOCOLS
from manyheads.recipe_data.pair_splits import find_corpus
from manyheads.recipe_data.text_data import PairData
from tests.made import TRANSLATE, run, write_numbers

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty file system, and an empty folder of copies."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def find_data(name: str, root: str | None, suffixes: tuple[str, ...] = ("",)) -> list[Path]:
    """Find data that a person has named."""
    allow(name, root)
    return find_allowed(name, root, suffixes)


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


def test_equal_names_in_several_folders(memory: Any) -> None:
    """Each match of a pattern has a copy of its own."""
    for name in ("one/0.tar", "two/0.tar", "two/deep/0.tar"):
        memory.pipe(f"/b/{name}", name.encode())
    found = find_data("memory://b/**/*.tar", None)
    assert [path.read_text() for path in found] == ["one/0.tar", "two/0.tar", "two/deep/0.tar"]
    found = find_data("memory://b/*/0.tar", None)
    assert [path.read_text() for path in found] == ["one/0.tar", "two/0.tar"]


def test_a_change_that_the_key_does_not_tell(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of HTTP, whose key in fsspec is that of the address alone."""
    monkeypatch.setattr(memory, "ukey", lambda path: path)
    memory.pipe("/data/a.tsv", b"one\teins\n")
    find_data("memory://data/a.tsv", None)
    memory.pipe("/data/a.tsv", b"two\tzwei\n")
    assert find_data("memory://data/a.tsv", None)[0].read_bytes() == b"two\tzwei\n"


def test_what_tells_the_version_of_a_file() -> None:
    """Not where an address leads to today; all else where a file system tells little."""
    page = {"name": "https://a/x", "size": 3, "url": "https://b/x?key=1", "ETag": '"1"'}
    version = remote._version(page)
    assert remote._version({**page, "url": "https://b/x?key=2"}) == version
    assert remote._version({**page, "ETag": '"2"'}) != version
    assert remote._version({**page, "size": 4}) != version
    other = {"name": "x", "size": 3, "revision": 1}
    assert remote._version({**other, "revision": 2}) != remote._version(other)


def test_what_is_removed_from_a_folder(memory: Any) -> None:
    """Goes from the copy too."""
    for name in ("left/1.png", "left/2.png", "right/1.png"):
        memory.pipe(f"/f/{name}", name.encode())
    (folder,) = find_data("memory://f", None)
    memory.rm("/f/left/2.png")
    memory.rm("/f/right", recursive=True)
    assert find_data("memory://f", None) == [folder]
    assert sorted(p.name for p in folder.rglob("*")) == [".1.png.origin", "1.png", "left"]


def test_a_file_is_copied_once_by_all_who_ask(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as the ranks of a host begin together."""
    memory.pipe("/data/a.tsv", b"one\teins\n")
    opened: list[str] = []
    kind = type(memory)  # each thread has a file system of its own
    real = kind.open

    def slowly(system: Any, place: str, mode: str) -> Any:
        opened.append(place)
        time.sleep(0.3)
        return real(system, place, mode)

    monkeypatch.setattr(kind, "open", slowly)
    with ThreadPoolExecutor(4) as ranks:
        found = list(ranks.map(find_data, ["memory://data/a.tsv"] * 4, [None] * 4))
    assert opened == ["/data/a.tsv"]
    assert {path.read_bytes() for (path,) in found} == {b"one\teins\n"}


def test_those_who_wait_for_what_is_not_there(memory: Any) -> None:
    """The folder of copies goes again while they wait; each is told."""

    def ask(_rank: int) -> str:
        with pytest.raises(NotFoundError) as raised:
            find_data("memory://nothing/x", None)
        return str(raised.value)

    with ThreadPoolExecutor(4) as ranks:
        assert set(ranks.map(ask, range(8))) == {"There is no data 'memory://nothing/x'."}


def test_what_is_not_there(memory: Any) -> None:
    wanted = (("memory://x", ("",)), ("memory://*.tar", ("",)), ("memory://x", (".en",)))
    for name, suffixes in wanted:
        with pytest.raises(NotFoundError, match="There is no data"):
            find_data(name, None, suffixes)


def test_protocols_are_those_of_storage() -> None:
    """fsspec has them all, and more; that they are known to it is no reason to read them."""
    of_packages = {"abfss"}  # that adlfs registers
    assert {*PROTOCOLS} - of_packages < {*fsspec.available_protocols()}
    others = ("carrier-pigeon", "reference", "zip", "simplecache", "github", "git", "dask")
    for protocol in others:
        with pytest.raises(UsageError, match=r"Protocols: .*memory"):
            find_data(f"{protocol}://x", None)


@pytest.mark.parametrize("chain", ["reference://::{}", "file://{}::reference://", "s3://a::{}"])
def test_no_address_leads_through_another(tmp_path: Path, chain: str) -> None:
    """A table of references would be rendered as templates, which is running its text."""
    references = tmp_path / "refs.json"
    references.write_text('{"version": 1, "refs": {"a": "one"}}', encoding="utf-8")
    with pytest.raises(UsageError, match="has one protocol, without `::`"):
        find_data(chain.format(references), None)


@pytest.mark.parametrize(
    ("told", "command"),
    [
        ("Install s3fs to access S3", "pip install s3fs"),
        ("Install the requests package to use the gist FS", "pip install requests"),
        ('HTTP requires "requests" and "aiohttp" to be installed', "pip install requests aiohttp"),
        ('SMB requires "smbprotocol" or "smb[kerberos]" installed', "pip install smbprotocol"),
    ],
)
def test_the_package_of_a_protocol_is_missing(
    monkeypatch: pytest.MonkeyPatch, told: str, command: str
) -> None:
    """The message has a command that installs all that fsspec names."""

    def missing(_name: str) -> None:
        raise ImportError(told)

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(UsageError, match=f"With pip: {command}$"):
        find_data("http://a/x", None)


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


class Folder(NamedTuple):
    """A model folder whose recipe names addresses, and the file system behind these."""

    path: Path
    memory: Any


@pytest.fixture
def stored(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A model as another process finds it: nobody has given its addresses there."""
    write_numbers(tmp_path)
    for path in (tmp_path / "numbers").iterdir():
        memory.pipe(f"/far/numbers/{path.name}", path.read_bytes())
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        TRANSLATE.replace("[data]", "[data]\nroot = 'memory://far'"), encoding="utf-8"
    )
    run(recipe, tmp_path / "run", "train.steps=2")
    monkeypatch.setattr(paths, "_GIVEN", set())
    shutil.rmtree(tmp_path / "cache")
    return Folder(tmp_path / "run", memory)


def test_addresses_of_a_stored_recipe_are_not_read(stored: Folder, tmp_path: Path) -> None:
    """A model folder may come from anybody; `remote=True` is the user's own word."""
    for ask in (
        lambda: evaluate(stored.path),
        lambda: evaluate(stored.path, data="numbers/train"),
        lambda: export(stored.path, to="ctranslate2"),
        lambda: compare(str(stored.path), str(stored.path)),
    ):
        with pytest.raises(UsageError, match=r"'memory://far' is named by.*`remote=True`"):
            ask()
    (told,) = [each for each in diagnose(str(stored.path)).not_looked_at if "memory" in each]
    assert "`remote=True`" in told
    assert not (tmp_path / "cache").exists()
    assert evaluate(stored.path, remote=True)["data"] == "numbers/valid"
    assert not [e for e in diagnose(str(stored.path)).not_looked_at if "memory" in e]


def test_data_that_are_given_are_read(stored: Folder) -> None:
    """Also by an address, beside a recipe whose own are not read."""
    for side in ("en", "de"):
        stored.memory.cp(f"/far/numbers/valid.{side}", f"/near/valid.{side}")
    assert evaluate(stored.path, data="memory://near/valid")["data"] == "memory://near/valid"


def test_data_of_the_hub_that_a_stored_recipe_names() -> None:
    """Are on other machines, too."""
    with pytest.raises(UsageError, match=r"'hub:any/data' is named by.*`remote=True`"):
        find_corpus("hub:any/data", PairData(train="", valid="", source="en", target="de"))
