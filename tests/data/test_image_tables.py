"""Images in tables, in shards and on the hub: the same set in another form."""

import io
import json
import os
import sys
import tarfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.data.images.image_tables import read_hub, read_tables
from manyheads.data.images.shards import read_shards
from manyheads.errors import DataError, MissingExtraError, UsageError
from tests.made import half, png


@pytest.fixture
def originals(tmp_path: Path) -> Path:
    """Three images in a folder of their own."""
    (tmp_path / "images").mkdir()
    for number in range(3):
        half(number % 2, number).save(tmp_path / "images" / f"{number}.png")
    return tmp_path


def same(images: ImageSet, classes: list[str], labels: list[Any]) -> None:
    assert images.classes == classes
    assert images.labels.tolist() == labels
    for index in range(3):
        assert (np.asarray(images.open(index)) == np.asarray(half(index % 2, index))).all()


def listing(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# --- Tables -------------------------------------------------------------------------------------


def test_csv(originals: Path) -> None:
    """Paths are relative to the table; other columns do not matter; quotes as Excel has them."""
    path = listing(
        originals / "list.csv",
        '\ufefffile,by,kind\nimages/0.png,"A, B",left\n\n"images/1.png",,right\n'
        "images/2.png,,left\n",
    )
    images = read_tables([path], "file", "kind")
    same(images, ["left", "right"], [0, 1, 0])
    assert images.names[1] == str(originals / "images" / "1.png")


def test_tsv_and_jsonl(originals: Path) -> None:
    """The same set; numbers are names, too."""
    tsv = listing(
        originals / "list.tsv",
        "image\tlabel\nimages/0.png\t3\nimages/1.png\t7\nimages/2.png\t3\n",
    )
    same(read_tables([tsv], "image", "label"), ["3", "7"], [0, 1, 0])
    rows = [
        {"image": str(originals / f"images/{n}.png"), "label": 3 + 4 * (n % 2)} for n in range(3)
    ]
    jsonl = listing(originals / "list.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    same(read_tables([jsonl], "image", "label"), ["3", "7"], [0, 1, 0])


def test_several_labels(originals: Path) -> None:
    """A list, or names with a separator; none is an answer, too."""
    csv = listing(
        originals / "list.csv",
        "image,label\nimages/0.png,red; big\nimages/1.png,\nimages/2.png,big\n",
    )
    same(read_tables([csv], "image", "label", ";"), ["big", "red"], [[1, 1], [0, 0], [1, 0]])
    rows = [
        {"image": f"images/{n}.png", "label": each}
        for n, each in enumerate([["red", "big"], [], ["big"]])
    ]
    jsonl = listing(originals / "list.jsonl", "\n".join(map(json.dumps, rows)))
    images = read_tables([jsonl], "image", "label", ";")
    same(images, ["big", "red"], [[1, 1], [0, 0], [1, 0]])
    other = images.relabel(["red", "huge", "big"])
    assert other.labels.tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(DataError, match=r"0\.png has a list of labels.*multi_label = true"):
        read_tables([jsonl], "image", "label")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.csv",
            "path,label\nx.png,cat\n",
            r"line 2 has no image. It has path, label.*data\.image",
        ),
        ("a.csv", "image,labl\nx.png,cat\n", r"no label: did you mean 'labl'\?"),
        ("a.csv", "image,Label\nx.png,cat\n", r"no label: did you mean 'Label'\?"),
        ("a.csv", "image,label\nx.png\n", "line 2 has 1 cells, the header has 2"),
        ("a.csv", "image,label\n", "no rows"),
        ("a.csv", "image,label,label\na.png,b,c\n", "line 1: two columns have the same name"),
        ("a.csv", "image,label\n,cat\n", "line 2: image is '', not a path"),
        ("a.csv", "image,label\nx.png,\n", r"x\.png has no label"),
        ("a.jsonl", "{}\n[1]\n", "line 1 has no image or label"),
        ("a.jsonl", "\nno\n", "line 2: not valid JSON"),
        ("a.csv", 'image,label\nx.png,"cat\n', "line 2: the record that begins here is not valid"),
        ("a.jsonl", "[1]\n", "line 1 is not an object"),
        ("a.jsonl", '{"image": 3, "label": "cat"}\n', "line 1: image is 3, not a path"),
    ],
)
def test_tables_that_are_not_right(tmp_path: Path, name: str, text: str, message: str) -> None:
    """The file, the line, and what is missing."""
    with pytest.raises(DataError, match=message):
        read_tables([listing(tmp_path / name, text)], "image", "label")


def test_a_missing_image_is_named_when_it_is_opened(originals: Path) -> None:
    """As one that cannot be read."""
    path = listing(originals / "list.csv", "image,label\nnone.png,cat\n")
    images = read_tables([path], "image", "label")
    with pytest.raises(DataError, match=r"none\.png cannot be read"):
        images.open(0)
    (originals / "bad.csv").write_bytes(b"image,label\n\xff,cat\n")
    with pytest.raises(DataError, match="line 2: byte 1 of the line, 0xff, is not valid UTF-8"):
        read_tables([originals / "bad.csv"], "image", "label")


def test_any_number_of_channels(tmp_path: Path) -> None:
    """Arrays of numpy: five channels of 16 bits are resized one by one, and declared."""
    values = (np.arange(5)[None, None] * 256 * np.ones((8, 12, 1))).astype(np.uint16)
    np.save(tmp_path / "0.npy", values)
    images = read_tables(
        [listing(tmp_path / "l.csv", "image,label\n0.npy,any\n")], "image", "label"
    )
    preprocessing = Preprocessing(height=4, width=6, mode="bands", num_channels=5)
    assert preprocessing.channels == 5
    seen = images.pixels(0, preprocessing)
    assert seen.shape == (5, 4, 6)
    assert (seen == np.arange(5)[:, None, None]).all()
    with pytest.raises(DataError, match=r"0\.npy .*5 channels, the recipe declares 4"):
        images.pixels(0, Preprocessing(mode="bands", num_channels=4))
    with pytest.raises(DataError, match="5 channels, the recipe declares 3"):
        images.pixels(0, Preprocessing())
    with pytest.raises(DataError, match=r"0\.npy .*array of numbers, not colours"):
        images.image(0)


def test_tables_without_labels(originals: Path) -> None:
    """Whoever learns without labels needs no column of them."""
    for name, text in (
        ("l.csv", "image\nimages/0.png\n\nimages/1.png\n"),
        ("l.tsv", 'image\tby\nimages/0.png\tA "B"\n\nimages/1.png\t\n'),
        ("l.jsonl", '{"image": "images/0.png"}\n\n{"image": "images/1.png"}\n'),
    ):
        images = read_tables([listing(originals / name, text)], "image", None)
        assert (images.classes, images.labels.tolist()) == ([], [0, 0])
        images.open(1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((2, 2, 3), -1.0), "fractions from 0 to 1"),
        (np.zeros((2, 2, 3), dtype=np.int64), "its numbers are int64"),
        (np.zeros((2, 2, 3, 1), dtype=np.uint8), r"\(2, 2, 3, 1\), not \(height, width, channel\)"),
        (np.array([{}]), "Object arrays cannot be loaded"),
        (np.zeros(5, dtype=np.uint8), r"\(5,\), not \(height, width, channel\)"),
        (np.full((2, 2), np.nan), "float64 from nan to nan"),
        (np.zeros((2, 2), dtype=bool), "its numbers are bool"),
        (np.zeros((2, 2), dtype="S3"), "its numbers are .S3"),
        (np.zeros((2, 2), dtype=[("a", "u1")]), "its numbers are"),
    ],
)
def test_arrays_that_are_no_images(tmp_path: Path, array: np.ndarray, message: str) -> None:
    """Said with the file's name; nothing is unpickled."""
    np.save(tmp_path / "0.npy", array)
    images = read_tables(
        [listing(tmp_path / "l.csv", "image,label\n0.npy,any\n")], "image", "label"
    )
    with pytest.raises(DataError, match=message):
        images.open(0)  # where checking looks at it, too


# --- Shards -------------------------------------------------------------------------------------


def shard(path: Path, **members: bytes) -> Path:
    """Write a tar; 0__png is 0.png, in the folder data."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"data/{name.removeprefix('_').replace('__', '.')}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_shards(tmp_path: Path) -> None:
    """Two archives, labels as text and as a key; read in any order, from anywhere."""
    made = [png(half(n % 2, n)) for n in range(3)]
    one = shard(
        tmp_path / "0.tar", _0__png=made[0], _0__cls=b"left\n", _1__cls=b"right", _1__png=made[1]
    )
    other = shard(
        tmp_path / "1.tar", _2__json=b'{"label": "left", "w": 6}', _2__png=made[2], notes__md=b""
    )
    images = read_shards([one, other], "label")
    same(images, ["left", "right"], [0, 1, 0])
    assert images.names[2] == f"{other}: data/2.png"
    part = images.select(np.array([2, 0]))
    assert (np.asarray(part.open(0)) == np.asarray(half(0, 2))).all()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"_0__png": b""}, r"data/0 has no label: expected data/0\.cls"),
        ({"_0__png": b"", "_0__json": b"{}"}, "has no 'label'"),
        ({"_0__png": b"", "_0__json": b"nope"}, r"0\.json cannot be read"),
        ({"_0__cls": b"cat"}, "no images"),
    ],
)
def test_shards_that_are_not_right(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    """Archive, member, and what was expected."""
    with pytest.raises(DataError, match=message):
        read_shards([shard(tmp_path / "a.tar", **members)], "label")


@pytest.mark.parametrize("beside", [{}, {"img__png": b"", "img__cls": b"cat"}])
def test_images_whose_names_have_another_dot(tmp_path: Path, beside: dict[str, bytes]) -> None:
    """They would count as one image, img, or as none: refused, and counted."""
    members = {"a__png": b"", "a__cls": b"cat"} | beside
    for name in ("img__1", "img__2"):
        members |= {f"{name}__png": b"", f"{name}__cls": b"dog"}
    with pytest.raises(DataError, match=r"img\.1\.png has a dot .* \(2 such images\)"):
        read_shards([shard(tmp_path / "a.tar", **members)], "label")


def test_further_images_of_an_image(tmp_path: Path) -> None:
    """A mask that lies beside an image is not lost, nor is what macOS adds one."""
    members = {"a__png": b"", "a__seg__png": b"", "a__cls": b"cat", "___a__png": b""}
    assert len(read_shards([shard(tmp_path / "a.tar", **members)], "label")) == 1


def test_not_an_archive(tmp_path: Path) -> None:
    """A compressed one says what to do."""
    path = tmp_path / "a.tar"
    path.write_bytes(b"\x1f\x8bsomething")
    with pytest.raises(DataError, match=r"cannot be read as a tar archive.*gunzip"):
        read_shards([path], "label")


def whole_shard(tmp_path: Path) -> bytes:
    made = [png(half(n % 2, n)) for n in range(3)]
    members = {"_0__png": made[0], "_0__cls": b"left", "_1__png": made[1], "_1__cls": b"right"}
    return shard(tmp_path / "whole.tar", **members, _2__png=made[2], _2__cls=b"left").read_bytes()


def test_a_shard_that_is_cut_off(tmp_path: Path) -> None:
    """Anywhere, also where a member ends: tarfile would tell of the members before it only."""
    whole = whole_shard(tmp_path)
    end = len(whole.rstrip(b"\0")) // tarfile.BLOCKSIZE * tarfile.BLOCKSIZE + tarfile.BLOCKSIZE
    path = tmp_path / "cut.tar"
    for size in (*range(0, end, tarfile.BLOCKSIZE), 700, 1030, end - 100, end + 100):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"cut\.tar cannot be read as a tar archive: .* again"):
            read_shards([path], "label")
    path.write_bytes(whole[: end + tarfile.BLOCKSIZE])  # padding need not be there
    assert len(read_shards([path], "label")) == 3


def test_a_shard_with_a_damaged_or_a_second_part(tmp_path: Path) -> None:
    """Where tarfile stops without a word."""
    whole = whole_shard(tmp_path)
    damaged = bytearray(whole)
    damaged[damaged.index(b"data/1.cls")] ^= 1  # the checksum of its header is wrong
    for content in (bytes(damaged), whole * 2):
        path = tmp_path / "a.tar"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.tar .*: it is damaged .* or two archives"):
            read_shards([path], "label")


def link(archive: tarfile.TarFile, name: str, target: str, kind: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    archive.addfile(entry)


def test_links_in_a_shard(tmp_path: Path) -> None:
    """tar packs a file that has two names once; both are images."""
    path = tmp_path / "a.tar"
    path.write_bytes(whole_shard(tmp_path))
    with tarfile.open(path, "a") as archive:
        link(archive, "data/3.png", "data/0.png", tarfile.LNKTYPE)
        link(archive, "data/3.cls", "1.cls", tarfile.SYMTYPE)
        link(archive, "data/4.png", "../data/3.png", tarfile.SYMTYPE)
        link(archive, "data/4.cls", "data/3.cls", tarfile.LNKTYPE)
        link(archive, "data/notes.md", "nowhere", tarfile.SYMTYPE)
    images = read_shards([path], "label")
    assert images.labels.tolist() == [0, 1, 0, 1, 1]
    assert (np.asarray(images.open(4)) == np.asarray(half(0, 0))).all()
    for target in ("nowhere.png", "5.png", "/etc/hostname"):
        with tarfile.open(path, "a") as archive:
            link(archive, "data/5.png", target, tarfile.SYMTYPE)
        with pytest.raises(
            DataError, match=r"data/5\.png is a link to .*not a file of the archive"
        ):
            read_shards([path], "label")


def test_images_of_a_shard_that_would_be_passed_over(tmp_path: Path) -> None:
    """Without an ending, in a format that is not read, or beside another of the same name."""
    image = png(half(0, 0))
    path = shard(tmp_path / "a.tar", a=image, a__cls=b"left", b__heic=b"x", b__cls=b"left")
    images = read_shards([path], "label")
    assert len(images) == 2
    assert images.open(0).size == (6, 4)
    path = shard(tmp_path / "a.tar", a__png=image, a__webp=image, a__cls=b"left")
    with pytest.raises(DataError, match=r"data/a\.png and data/a\.webp have the same name"):
        read_shards([path], "label")


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b"\xff", b"x" * (1 << 20) + b"x", b'{"label": {}}']
)
def test_labels_of_a_shard_that_are_none(tmp_path: Path, text: bytes) -> None:
    """Nested too deeply, not UTF-8, too long, or not a text."""
    path = shard(tmp_path / "a.tar", a__png=b"", a__json=text)
    with pytest.raises(DataError, match=r"a\.tar: data/a\."):
        read_shards([path], "label")


def test_files_that_are_none(tmp_path: Path) -> None:
    """A pipe as a shard, as a table, or named by one, is not opened."""
    os.mkfifo(tmp_path / "a.tar")
    with pytest.raises(DataError, match=r"a\.tar cannot be read as .*: it is a named pipe"):
        read_shards([tmp_path / "a.tar"], "label")
    rows = "image,label\na.tar,cat\n/dev/zero,cat\nhalf.png,dog\n" + "x" * 300 + ".png,dog\n"
    path = listing(tmp_path / "l.csv", rows)
    half(0, 0).save(tmp_path / "half.png")
    images = read_tables([path], "image", "label").readable(Preprocessing())
    assert len(images) == 1
    assert [each.partition(" (")[2] for each in images.left_out] == [
        "it is a named pipe, not a file)",
        "it is a device, not a file)",
        "File name too long)",
    ]


# --- The hub ------------------------------------------------------------------------------------


class Rows:
    """As a data set of the hub's package: columns, features, cells that are not decoded."""

    column_names = ("image", "label")
    features = {"label": SimpleNamespace(names=["left", "right"])}  # noqa: RUF012
    _fingerprint = "abc"

    def cast_column(self, name: str, feature: object) -> "Rows":
        assert (name, feature) == ("image", "undecoded")
        return self

    def __getitem__(self, key: Any) -> Any:
        if key == "label":
            return [0, 1, 0]
        return {"image": {"bytes": png(half(key % 2, key)), "path": None}}

    def __len__(self) -> int:
        return 3


def test_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers become the names of the classes; the name says configuration and split."""
    asked: list[Any] = []
    module = ModuleType("datasets")
    module.Image = lambda decode: "undecoded"  # type: ignore[attr-defined]

    def load(repository: str, configuration: str | None, split: str) -> Rows:
        asked.append((repository, configuration, split))
        return Rows()

    module.load_dataset = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    images = read_hub("hub:owner/halves:small:test", "image", "label")
    same(images, ["left", "right"], [0, 1, 0])
    assert images.names[0] == "hub:owner/halves:small:test, row 1"
    assert asked == [("owner/halves", "small", "test")]
    monkeypatch.setattr(Rows, "features", {"label": SimpleNamespace(names=["left"])})
    with pytest.raises(DataError, match="row 2: the label is 1, not one of its 1 classes"):
        read_hub("hub:owner/halves", "image", "label")
    with pytest.raises(DataError, match=r"no img: did you mean 'image'\? It has image, label"):
        read_hub("hub:owner/halves", "img", "label")
    with pytest.raises(UsageError, match="hub:owner/name:configuration:split"):
        read_hub("hub:", "image", "label")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"manyheads\[datasets\]"):
        read_hub("hub:owner/halves", "image", "label")
