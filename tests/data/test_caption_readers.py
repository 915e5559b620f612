"""What is wrong with images and texts is named, with its place, and the rest is read."""

import hashlib
import json
import multiprocessing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.cell_store import CellStore
from manyheads.data.text.lines import Problem
from manyheads.errors import DataError, RecipeError, UsageError
from manyheads.recipe_data.caption_data import CaptionData
from manyheads.recipe_data.caption_splits import find_captioned, read_captioned
from tests.captioned import FORMS, PAIRS, colour, contents, expected, read, tar
from tests.made import png

Found = tuple[CaptionedImages, list[Problem]]


def found(folder: Path, train: str, **keys: Any) -> Found:
    """Read data, and list what was not used."""
    captions = find_captioned(train, CaptionData(root=str(folder), train=train, **keys))
    return captions, list(captions.problems)


def kinds(problems: list[Problem]) -> list[tuple[str, str]]:
    """Each problem and its place, without the folder."""
    return [(each.kind, each.place.rpartition("/")[2]) for each in problems]


def write_images(folder: Path, count: int = 3) -> None:
    for number in range(count):
        colour(number).save(folder / f"{number}.png")


def parquet(path: Path, rows: list[dict[str, Any]], schema: Any = None) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


# --- Tables -------------------------------------------------------------------------------------


def test_rows_of_a_table(tmp_path: Path) -> None:
    """Without text, without image, of another type, half a character: all named, one is left."""
    write_images(tmp_path)
    rows: list[dict[str, Any]] = [
        {"image": "0.png", "caption": ["one", " ", None, 5, "\ud83d", ["x"]]},
        {"image": "1.png", "caption": None},
        {"image": "", "caption": "lost"},
        {"image": 3, "caption": "lost"},
        {"caption": "lost"},
        {"image": "2.png", "caption": {"en": "x"}},
    ]
    lines = [*map(json.dumps, rows), "[1]", "nope", ""]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    images, problems = found(tmp_path, "a.jsonl")
    assert contents(images) == [(colour(0).getpixel((0, 0)), [("en", "one")])]
    assert kinds(problems) == [
        ("empty-text", "a.jsonl, line 1"),
        ("not-text", "a.jsonl, line 1"),
        ("invalid-utf8", "a.jsonl, line 1"),
        ("not-text", "a.jsonl, line 1"),
        ("no-image", "a.jsonl, line 3"),
        ("no-image", "a.jsonl, line 4"),
        ("no-image", "a.jsonl, line 5"),
        ("not-text", "a.jsonl, line 6"),
        ("invalid-record", "a.jsonl, line 7 is not an object"),
        ("invalid-record", "a.jsonl, line 8"),
        ("no-text", "1.png"),
        ("no-text", "2.png"),
    ]
    assert "5 is not a text" in problems[1].message
    assert problems[0].harmless


def test_rows_of_a_path_are_one_image(tmp_path: Path) -> None:
    """However far they are apart; its captions keep the order of the rows."""
    write_images(tmp_path)
    (tmp_path / "a.csv").write_text(
        "file,caption\n1.png,b1\n0.png,a1\n1.png,b2\n./0.png,a2\n1.png,b2\n"
    )
    images, problems = found(tmp_path, "a.csv", image="file")
    assert problems == []
    assert [Path(name).name for name in images.images.names] == ["1.png", "0.png"]
    assert images.texts == ["b1", "b2", "b2", "a1", "a2"]
    assert images.owners.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("languages", "kept", "lost"),
    [
        ((), ["en", "pt-BR", "zh_Hans"], ["no-language"] * 3),
        (
            ("en", "ko"),
            ["en"],
            ["undeclared-language", "undeclared-language", *["no-language"] * 3],
        ),
    ],
)
def test_languages(
    tmp_path: Path, languages: tuple[str, ...], kept: list[str], lost: list[str]
) -> None:
    """Codes, of those that are declared if any are."""
    write_images(tmp_path, 1)
    given = ["en", "pt-BR", "zh_Hans", "", "English please", None]
    lines = [json.dumps({"image": "0.png", "caption": "x", "lang": each}) for each in given]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    images, problems = found(tmp_path, "a.jsonl", language_column="lang", languages=languages)
    assert images.languages == kept
    assert [each.kind for each in problems] == lost
    if languages:
        assert "the language is 'pt-BR', and data.languages names en, ko" in problems[0].message


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_columns_that_are_missing(tmp_path: Path, name: str) -> None:
    """The nearest is named; of an image, of texts, of a language, of selected rows."""
    write_images(tmp_path, 1)
    row = {"image": "0.png", "caption": "x", "split": "train"}
    if name == "a.parquet":
        parquet(tmp_path / name, [row])
    else:
        sign = "," if name == "a.csv" else "\t"
        text = f"{sign.join(row)}\n{sign.join(row.values())}\n"
        (tmp_path / name).write_text(json.dumps(row) if name == "a.jsonl" else text)
    for keys, message in (
        ({"image": "imag"}, r"no imag: did you mean 'image'\?"),
        ({"caption": "captions"}, r"no captions: did you mean 'caption'\?"),
        ({"texts": {"en": "caption", "ko": ["name"]}}, r"no name\. It has image, caption, split"),
        ({"language_column": "lang"}, "has no lang"),
    ):
        with pytest.raises(DataError, match=message):
            found(tmp_path, name, **keys)
    with pytest.raises(DataError, match=r"has no splat: did you mean 'split'\?"):
        found(tmp_path, f"{name}[splat=train]")
    with pytest.raises(DataError, match=r"no row has split = 'tain': did you mean 'train'\?"):
        found(tmp_path, f"{name}[split=tain]")


def test_a_parquet_of_other_types(tmp_path: Path) -> None:
    """Refused before a row is read: numbers for images, numbers for texts."""
    image = png(colour(0))
    parquet(tmp_path / "a.parquet", [{"image": 3, "caption": "x"}])
    with pytest.raises(DataError, match=r"a\.parquet: image holds int64, not images"):
        found(tmp_path, "a.parquet")
    for value in (3, [1.5], {"en": "x"}, image):
        parquet(tmp_path / "a.parquet", [{"image": image, "caption": value}])
        with pytest.raises(DataError, match=r"a\.parquet: caption holds .*, not texts"):
            found(tmp_path, "a.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        found(tmp_path, "a.parquet")


def test_rows_of_a_parquet(tmp_path: Path) -> None:
    """Nothing in a cell, and text that is not UTF-8; texts may be numbered values."""
    image = png(colour(0))
    rows = [
        {"image": image, "caption": b"one"},
        {"image": image, "caption": b"\xff\xfe"},
        {"image": None, "caption": b"lost"},
        {"image": b"", "caption": b"lost"},
        {"image": image, "caption": None},
    ]
    table = pa.Table.from_pylist(rows)
    wrong = table["caption"].combine_chunks().view(pa.string())  # as other writers may leave it
    pq.write_table(table.set_column(1, "caption", wrong), tmp_path / "a.parquet")
    images, problems = found(tmp_path, "a.parquet")
    assert images.texts == ["one"]
    assert kinds(problems) == [
        ("invalid-utf8", "a.parquet, row 2"),
        ("no-image", "a.parquet, row 3"),
        ("no-image", "a.parquet, row 4"),
        ("no-text", "a.parquet, row 5"),
    ]
    texts = pa.array(["a", "b"]).dictionary_encode()
    pq.write_table(pa.table({"image": [image] * 2, "caption": texts}), tmp_path / "a.parquet")
    assert found(tmp_path, "a.parquet")[0].texts == ["a", "b"]


def test_files_of_several_kinds(tmp_path: Path) -> None:
    """A pattern that matches a table and an archive, or two folders; an ending without reader."""
    for name in ("a.csv", "a.tar", "a.xyz"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "f1").mkdir()
    (tmp_path / "f2").mkdir()
    with pytest.raises(RecipeError, match=r"matches .*a\.csv.*: name one folder"):
        found(tmp_path, "a.*")
    with pytest.raises(RecipeError, match="name one folder"):
        found(tmp_path, "f*")
    with pytest.raises(UsageError, match=r"a\.xyz' is not read as images with texts"):
        found(tmp_path, "a.xyz")
    with pytest.raises(UsageError, match=r"selects rows, but .*f1 is not a table: .*\[split=x\]"):
        found(tmp_path, "f1[split=x]")
    with pytest.raises(UsageError, match="not here"):
        found(tmp_path, "converted:x")


# --- Rows by name -------------------------------------------------------------------------------


def split_rows() -> list[dict[str, Any]]:
    return [
        {"image": png(colour(n)), "caption": str(n), "split": "test" if n == 1 else "train", "n": n}
        for n in range(3)
    ]


def test_rows_selected_by_name(tmp_path: Path) -> None:
    """The hash is that of the file and the selection; rows keep their numbers."""
    parquet(tmp_path / "a.parquet", split_rows())
    whole = hashlib.sha256((tmp_path / "a.parquet").read_bytes()).hexdigest()
    images, problems = found(tmp_path, "a.parquet[split=train]")
    assert problems == []
    assert images.texts == ["0", "2"]
    assert images.images.names[1].endswith("a.parquet, row 3")
    assert images.images.origin.endswith("a.parquet[split=train]")
    expected = hashlib.sha256(f"{whole}[split=train]".encode()).hexdigest()
    assert images.images.hashes == (expected,)
    assert found(tmp_path, "a.parquet")[0].images.hashes == (whole,)
    assert found(tmp_path, "a.parquet[n=2]")[0].texts == ["2"]
    with pytest.raises(DataError, match=r"no row has n = '5'\. There are '0', '1', '2'"):
        found(tmp_path, "a.parquet[n=5]")


def test_rows_selected_of_other_forms(tmp_path: Path) -> None:
    """Lines of tables, images of COCO; the texts of images left out are not missed."""
    write_images(tmp_path)
    (tmp_path / "a.csv").write_text("image,caption,split\n0.png,x,a\n1.png,y,b\n0.png,z,a\n")
    assert found(tmp_path, "a.csv[split=a]")[0].texts == ["x", "z"]
    table = {
        "images": [{"id": n, "file_name": f"{n}.png", "split": "ab"[n]} for n in (0, 1)],
        "annotations": [{"image_id": n, "caption": "xy"[n]} for n in (0, 1)],
    }
    (tmp_path / "c.json").write_text(json.dumps(table))
    images, problems = found(tmp_path, "c.json[split=b]")
    assert (images.texts, problems) == (["y"], [])
    with pytest.raises(DataError, match="no row has split = 'c'"):
        found(tmp_path, "c.json[split=c]")
    with pytest.raises(DataError, match=r"c\.json has no splat: did you mean 'split'\?"):
        found(tmp_path, "c.json[splat=a]")


# --- Folders and shards -------------------------------------------------------------------------


def test_a_folder(tmp_path: Path) -> None:
    """A text of no image, an image without one, two of one name, a line that is not UTF-8."""
    write_images(tmp_path, 4)
    colour(7).save(tmp_path / "3.jpg")
    (tmp_path / "0.txt").write_bytes("\ufeffone\r\n\r\ntwo\r\n".encode())
    (tmp_path / "0.pt-BR.txt").write_text("um")
    (tmp_path / "1.txt").write_bytes(b"\xff\nfine")
    (tmp_path / "2.txt").write_bytes(b"\n")
    for name in ("3", "4", "0.backup", "README", ".hidden"):
        (tmp_path / f"{name}.txt").write_text("x")
    (tmp_path / "notes.md").write_text("x")
    images, problems = found(tmp_path, ".")
    assert images.texts == ["one", "two", "um", "fine"]
    assert images.languages == ["en", "en", "pt-BR", "en"]
    serious = [each for each in problems if not each.harmless]
    assert kinds(serious) == [
        ("no-image", "0.backup.txt"),
        ("no-image", "4.txt"),
        ("invalid-utf8", "1.txt, line 1"),
        ("same-name", "3.jpg"),
        ("same-name", "3.png"),
        ("no-text", "2.png"),
    ]
    assert [Path(each).name for each in images.images.other_files] == [
        "0.backup.txt",
        "4.txt",
        "README.txt",
        "notes.md",
    ]
    changed = images.images.hashes
    (tmp_path / "0.txt").write_text("one\ntwo!")
    assert found(tmp_path, ".")[0].images.hashes != changed


def test_a_folder_has_no_columns(tmp_path: Path) -> None:
    """Named ones are refused; a folder without images, or without texts, says so."""
    with pytest.raises(DataError, match="no images"):
        found(tmp_path, ".")
    write_images(tmp_path, 2)
    with pytest.raises(DataError, match="none of 2 images has a text"):
        found(tmp_path, ".")
    with pytest.raises(RecipeError, match=r"leave out data\.texts, data\.caption and"):
        found(tmp_path, ".", caption="name")
    (tmp_path / "0.txt").write_text("eins")
    (tmp_path / "1.fr.txt").write_text("deux")
    images, problems = found(tmp_path, ".", language="de", languages=("de", "en"))
    assert (images.texts, images.languages) == (["eins"], ["de"])
    assert kinds(problems) == [("undeclared-language", "1.fr.txt, line 1"), ("no-text", "1.png")]


def test_shards(tmp_path: Path) -> None:
    """As a folder; of .json and .txt the .txt counts, unless columns are named."""
    image = png(colour(0))
    members = {
        "both.png": image,
        "both.txt": b"plain\r\nlines\n",
        "both.json": b'{"caption": "named", "other": 3}',
        "json.png": image,
        "json.json": b'{"caption": ["first", 5]}',
        "broken.png": image,
        "broken.json": b"{",
        "list.png": image,
        "list.json": b"[]",
        "wrong.png": image,
        "wrong.txt": b"\xff",
        "large.png": image,
        "large.txt": b"x" * ((1 << 20) + 1),
        "two.png": image,
        "two.jpg": image,
        "two.txt": b"x",
        "lost.txt": b"x",
        "none.png": image,
    }
    tar(tmp_path / "a.tar", members)
    images, problems = found(tmp_path, "a.tar")
    assert images.texts == ["plain", "lines", "first"]
    assert kinds(problems) == [
        ("not-text", "a.tar: json.png"),
        ("invalid-record", "a.tar: broken"),
        ("invalid-record", "a.tar: list"),
        ("invalid-record", "a.tar: wrong"),
        ("invalid-record", "a.tar: large"),
        ("same-name", "a.tar: two.png"),
        ("same-name", "a.tar: two.jpg"),
        ("no-image", "a.tar: lost"),
        *(
            ("no-text", f"a.tar: {name}.png")
            for name in ("broken", "list", "wrong", "large", "none")
        ),
    ]
    assert found(tmp_path, "a.tar", caption="caption")[0].texts == ["named", "first"]
    with pytest.raises(DataError, match=r"has no captions: did you mean 'caption'\?"):
        found(tmp_path, "a.tar", caption="captions")
    tar(tmp_path / "b.tar", {"a.1.png": image, "a.1.txt": b"x"})
    with pytest.raises(DataError, match=r"a\.1\.png has a dot before its ending"):
        found(tmp_path, "b.tar")


# --- COCO ---------------------------------------------------------------------------------------


def test_annotations(tmp_path: Path) -> None:
    """Of no image, without an id, without text; images twice, without a name."""
    write_images(tmp_path)
    table = {
        "images": [
            {"id": 1, "file_name": "0.png"},
            {"id": "two", "file_name": "1.png"},
            {"id": 1, "file_name": "2.png"},
            {"id": 3, "file_name": "0.png"},
            {"id": 4},
            {"id": [5], "file_name": "2.png"},
            "6",
            {"id": 7, "file_name": "gone.png"},
        ],
        "annotations": [
            {"image_id": 3, "caption": "a"},
            {"image_id": 1, "caption": "b"},
            {"image_id": 9, "caption": "x"},
            {"image_id": 4, "caption": "x"},
            {"caption": "x"},
            {"image_id": "two", "caption": 8},
            {"image_id": 7, "caption": "c"},
            None,
        ],
    }
    (tmp_path / "c.json").write_text(json.dumps(table))
    images, problems = found(tmp_path, "c.json")
    assert images.texts == ["a", "b", "c"]
    assert images.owners.tolist() == [0, 0, 1]
    assert kinds(problems) == [
        ("invalid-record", "c.json, image 3"),
        ("no-image", "c.json, image 5"),
        ("invalid-record", "c.json, image 6"),
        ("invalid-record", "c.json, image 7"),
        ("no-image", "c.json, annotation 3"),
        ("invalid-record", "c.json, annotation 5"),
        ("not-text", "c.json, annotation 6"),
        ("invalid-record", "c.json, annotation 8"),
        ("no-text", "1.png"),
    ]
    with pytest.raises(DataError, match=r"gone\.png cannot be read"):
        images.images.open(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "expected the lists images and annotations, found list"),
        (b'{"images": []}', r"expected the lists .*, found images.*\.jsonl"),
        (b'{"images": [], "annotations": []}', "no images"),
        (b"\xff\xff", "not valid UTF-8"),
        (b'{"images": [{"id": 1, "file_name": "a.png"}], "annotations": []}', "data.images"),
    ],
)
def test_files_that_are_no_annotations(tmp_path: Path, text: bytes, message: str) -> None:
    """What was expected, what was found, where images were looked for."""
    (tmp_path / "c.json").write_bytes(text)
    with pytest.raises(DataError, match=message):
        found(tmp_path, "c.json")


@pytest.mark.parametrize("place", ["a", "a/images", "a/val", "a/images/val", "images", "val"])
def test_folders_of_coco(tmp_path: Path, place: str) -> None:
    """Beside the annotations or above them; or named."""
    folder = tmp_path / place
    folder.mkdir(parents=True)
    write_images(folder, 1)
    (tmp_path / "a").mkdir(exist_ok=True)
    table = {
        "images": [{"id": 1, "file_name": "0.png"}],
        "annotations": [{"image_id": 1, "caption": "a"}],
    }
    (tmp_path / "a" / "captions_val.json").write_text(json.dumps(table))
    assert found(tmp_path, "a/captions_val.json")[0].images.open(0).size == (6, 4)
    if place != "a":
        folder.rename(tmp_path / "else")
        named, _ = found(tmp_path, "a/captions_val.json", images="else")
        assert named.images.open(0).size == (6, 4)


# --- Stop or skip -------------------------------------------------------------------------------


def test_stop_or_skip(tmp_path: Path) -> None:
    """All are counted before the run stops; left out, they are listed."""
    write_images(tmp_path)
    (tmp_path / "a.csv").write_text("image,caption\n0.png,one\n1.png,\n,lost\n")
    data = CaptionData(root=str(tmp_path), train="a.csv")
    message = r"a\.csv: 2 images or texts cannot be used: .*line 4 .*; .*1\.png \(an image without"
    with pytest.raises(DataError, match=message):
        read_captioned("a.csv", data)
    skipping = data.model_copy(update={"on_error": "skip"})
    images = read_captioned("a.csv", skipping)
    assert images.texts == ["one"]
    assert [each.rpartition(" (")[2] for each in images.images.left_out] == [
        "image is '', neither an image nor a path)",
        "an image without a text)",
    ]


# --- Images larger than memory ------------------------------------------------------------------


def test_images_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the first bytes they are in a file without a name; read in any order."""
    store = CellStore(in_memory=5)
    made = [bytes([n]) * n for n in (2, 2, 3, 0, 9, 1)]
    numbers = [store.add(content) for content in made]
    assert [store[n] for n in reversed(numbers)] == made[::-1]
    assert store[store.add(b"more")] == b"more"
    monkeypatch.setattr("manyheads.data.images.caption_readers.IN_MEMORY", 100)
    assert contents(read(FORMS["parquet"](tmp_path, PAIRS))) == expected(PAIRS)


def test_forked_processes_do_not_disturb_each_other() -> None:
    """Each reads all images behind memory again and again, as `train.workers` do."""
    store = CellStore(in_memory=0)
    made = [bytes([n]) * 50_000 for n in range(40)]
    for content in made:
        store.add(content)
    context = multiprocessing.get_context("fork")
    wrong = context.Value("i", 0)

    def look() -> None:
        if any([store[n] for n in range(len(made))] != made for _ in range(40)):
            wrong.value += 1

    processes = [context.Process(target=look) for _ in range(3)]
    for each in processes:
        each.start()
    for each in processes:
        each.join(60)
    assert [each.exitcode for each in processes] == [0, 0, 0]
    assert wrong.value == 0


def test_no_room_for_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that lacks it is named."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"temporary folder .*gone: No such file.*TMPDIR"):
        CellStore(in_memory=0).add(b"x")
