"""Bringing public corpora: from folders and from a server on this machine."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import pytest

from manyheads.data.text.public_corpora import CorpusFile, PublicCorpus, public_corpora
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.project.downloads import fetch, find_public

CONTENT = {
    "toy/train.en": "".join(f"line {n * 7919 % 9973} of many\n" for n in range(9000)).encode(),
    "toy/tok/train.en": b"line 1 , tokenised\n",
}
SPACED = CONTENT["toy/train.en"].replace(b"9 of many\n", b"9 of many \n")
PUBLISHED = {  # packed, and with spaces at the ends of some lines; the other as it is
    "raw/train.en.gz": gzip.compress(SPACED),
    "tok/train.tok.en": CONTENT["toy/tok/train.en"],
}


def corpus(url: str | None = None) -> PublicCorpus:
    entries = zip(CONTENT.items(), PUBLISHED, strict=True)
    parts = tuple(
        CorpusFile(path, len(content), hashlib.sha256(content).hexdigest(), at)
        for (path, content), at in entries
    )
    return PublicCorpus("toy", "A toy", "CC0", "https://example.org", url, None, parts)


def write(folder: Path, contents: dict[str, bytes]) -> Path:
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def brought(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


# --- The list -----------------------------------------------------------------------------------


def test_the_list_agrees_with_the_register_of_splits() -> None:
    """One checksum a file; every registered file of these corpora is brought."""
    text = files("manyheads.data").joinpath("splits.json").read_text(encoding="utf-8")
    known = {entry["name"]: entry["sha256"] for entry in json.loads(text)}
    listed = {file.path: file.sha256 for each in public_corpora().values() for file in each.files}
    whole = {name: digest for name, digest in known.items() if name in listed}
    assert whole.items() <= listed.items()
    folders = {f"{name}/" for name in public_corpora()}
    files_of = {name.partition("[")[0] for name in known}  # some are rows of a table
    assert listed.keys() == {name for name in files_of if name.startswith(tuple(folders))}


def test_what_can_be_downloaded_has_an_address_for_each_file() -> None:
    """And what cannot says how else it is had, or that it cannot be."""
    for each in public_corpora().values():
        assert each.licence
        assert (each.how is None) is (each.url is not None)
        assert all((file.at is None) is (each.url is None) for file in each.files)
    assert find_public("multi30k").url is not None
    with pytest.raises(NotFoundError, match="did you mean 'multi30k'"):
        find_public("multi30")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("enko", r"`python -m scripts\.data enko`.*their folder: `folder`"),
        ("tatoeba", r"cannot be had any more.*`python -m scripts\.data tatoeba`"),
        ("lecture", "It cannot be had"),
        ("digits", "Nothing has to be fetched"),
    ],
)
def test_a_corpus_without_a_home_in_our_form(tmp_path: Path, name: str, how: str) -> None:
    """What to do instead, or that nothing can be done."""
    with pytest.raises(UsageError, match=rf"{name} is not published in the form.*{how}"):
        fetch(find_public(name), tmp_path)


# --- From a folder ------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["data root", "corpus", "home"])
def test_from_a_folder(tmp_path: Path, layout: str) -> None:
    """As under a data root, the folder of the corpus itself, or a copy of its home."""
    within = {path.removeprefix("toy/"): content for path, content in CONTENT.items()}
    contents = {"data root": CONTENT, "corpus": within, "home": PUBLISHED}[layout]
    folder = write(tmp_path / "from", contents)
    done = fetch(corpus(), tmp_path / "root", folder=folder)
    assert brought(tmp_path / "root") == CONTENT
    assert (done.brought, done.present) == (2, 0)
    again = fetch(corpus(), tmp_path / "root", folder=folder)
    assert (again.brought, again.present) == (0, 2)


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    """Found and expected are named, and nothing is left behind."""
    folder = write(tmp_path / "from", CONTENT | {"toy/train.en": b"other\n"})
    with pytest.raises(DataError) as caught:
        fetch(corpus(), tmp_path / "root", folder=folder)
    assert hashlib.sha256(b"other\n").hexdigest() in str(caught.value)
    assert corpus().files[0].sha256 in str(caught.value)
    assert brought(tmp_path / "root") == {}


def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    """Another file by this name is the user's."""
    root = write(tmp_path / "root", {"toy/train.en": b"mine\n"})
    with pytest.raises(DataError, match="Move it away"):
        fetch(corpus(), root, folder=write(tmp_path / "from", CONTENT))
    assert brought(root) == {"toy/train.en": b"mine\n"}


def test_files_that_are_missing(tmp_path: Path) -> None:
    """The folder, or one of the files: all places looked at."""
    with pytest.raises(NotFoundError, match="no folder"):
        fetch(corpus(), tmp_path / "root", folder=tmp_path / "none")
    with pytest.raises(NotFoundError, match=r"does not hold toy/train\.en: looked for .*raw/train"):
        fetch(corpus(), tmp_path / "root", folder=tmp_path)


def test_a_damaged_packed_file(tmp_path: Path) -> None:
    """Cut off."""
    cut = {"raw/train.en.gz": PUBLISHED["raw/train.en.gz"][:-20]}
    folder = write(tmp_path / "from", PUBLISHED | cut)
    with pytest.raises(DataError, match="cannot be unpacked"):
        fetch(corpus(), tmp_path / "root", folder=folder)
    assert brought(tmp_path / "root") == {}


# --- From a server ------------------------------------------------------------------------------


class Server:
    """A home on this machine that can break off, and knows ranges or does not."""

    def __init__(self) -> None:
        self.contents = dict(PUBLISHED)
        self.break_after: int | None = None
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                server.asked.append((self.path, wanted))
                content = server.contents.get(self.path.lstrip("/"))
                if content is None:
                    self.send_error(404)
                    return
                begin = 0
                if wanted and server.ranges:
                    begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
                    if begin >= len(content):
                        self.send_error(416)
                        return
                self.send_response(206 if begin else 200)
                self.send_header("Content-Length", str(len(content) - begin))
                self.end_headers()
                self.wfile.write(content[begin:][: server.break_after])

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def test_download(tmp_path: Path, server: Server) -> None:
    """Unpacked, trimmed, checked; only the files stay."""
    said: list[str] = []
    done = fetch(corpus(server.url), tmp_path, say=said.append)
    assert brought(tmp_path) == CONTENT
    assert done.brought == 2
    assert [path for path, _ in server.asked] == ["/raw/train.en.gz", "/tok/train.tok.en"]
    assert said[0].startswith("downloading toy/train.en")


@pytest.mark.parametrize("ranges", [True, False], ids=["goes on", "begins again"])
def test_an_interrupted_download(tmp_path: Path, server: Server, ranges: bool) -> None:
    """Broken off after 5,000 bytes; the next call asks for the rest, and takes all if it must."""
    server.break_after, server.ranges = 5000, ranges
    with pytest.raises(DataError, match=r"too early.*Try again.*their folder: `folder`"):
        fetch(corpus(server.url), tmp_path)
    assert list(brought(tmp_path)) == ["toy/.manyheads-train.en.download.gz"]
    server.break_after = None
    fetch(corpus(server.url), tmp_path)
    assert brought(tmp_path) == CONTENT
    assert server.asked[1] == ("/raw/train.en.gz", "bytes=5000-")


def test_interrupted_after_the_last_byte(tmp_path: Path, server: Server) -> None:
    """Complete but not yet unpacked: nothing is downloaded twice."""
    write(tmp_path, {"toy/.manyheads-train.en.download.gz": PUBLISHED["raw/train.en.gz"]})
    fetch(corpus(server.url), tmp_path)
    assert brought(tmp_path) == CONTENT


def test_another_content_at_its_home(tmp_path: Path, server: Server) -> None:
    """Refused; the next call does not go on with it."""
    server.contents["raw/train.en.gz"] = gzip.compress(b"other\n")
    with pytest.raises(DataError, match="its home may have changed"):
        fetch(corpus(server.url), tmp_path)
    assert brought(tmp_path) == {}


def test_no_such_page(tmp_path: Path, server: Server) -> None:
    """The address, the reason and the way out."""
    server.contents.clear()
    with pytest.raises(
        DataError, match=r"raw/train\.en\.gz cannot be downloaded: .*Not Found.*`folder`"
    ):
        fetch(corpus(server.url), tmp_path)


def test_no_server(tmp_path: Path) -> None:
    """As without a network."""
    with Server() as server:
        pass
    with pytest.raises(DataError, match=r"cannot be downloaded: .*refused"):
        fetch(corpus(server.url), tmp_path)
