"""An index of images from Python: made, brought up to date, searched, refused.

The model is the shipped classifier of digits, with vectors for words (tests/digit_search.py).
"""

import json
import os
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import manyheads
from manyheads import ImageIndex
from manyheads.asks.image_search_request import ImageSearchRequest, IndexAnswer
from manyheads.errors import (
    DataError,
    FolderError,
    InterruptedRunError,
    NotFoundError,
    UnreadableError,
    UsageError,
)
from manyheads.image_search import index_folder
from manyheads.image_search import index_writer as writer
from manyheads.image_search.index_folder import IndexFolder
from manyheads.image_search.indexed_images import words_of
from manyheads.project.lock import locked
from manyheads.tasks.classify.predictor import Classifier
from tests import digit_search
from tests.digit_search import embed_images, write_digits
from tests.hub import serving


@pytest.fixture(autouse=True)
def searchable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Classifiers embed, and tests work in folders of their own."""
    digit_search.give(monkeypatch)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images the model was run on, in each call."""
    calls: list[int] = []

    def counted(self: Classifier, images: Any) -> np.ndarray:
        calls.append(len(images))
        return embed_images(self, images)

    monkeypatch.setattr(Classifier, "embed_images", counted)
    return calls


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file has changed within the tick of the clock: its state is kept."""
    monkeypatch.setattr(index_folder, "TICK", -(1 << 62))


def index(*images: str | Path, out: str = "i", **parameters: Any) -> IndexAnswer:
    return manyheads.index(images, out=out, model="digits", **parameters)


def counts(answer: IndexAnswer) -> dict[str, int]:
    """What is not 0."""
    found = answer.to_json()
    assert found.pop("images") == len(content(Path("i")))
    del found["unreadable"]
    return {name: count for name, count in found.items() if count}


def content(path: Path) -> dict[str, bytes]:
    """The vector of each image of an index."""
    folder = IndexFolder(path)
    images = folder.images_of(range(folder.rows))
    vectors = folder.vectors()
    folder.close()
    return {each.name: vectors[row].tobytes() for row, group in images.items() for each in group}


# --- Searching ----------------------------------------------------------------------------------


def test_images_are_found_by_words_and_by_images(tmp_path: Path) -> None:
    """A seven by its word; an image by itself, at whatever place it is given."""
    paths = write_digits(tmp_path / "digits", 60)
    index("digits")
    found = manyheads.search("seven", index="i", top=4)
    assert [Path(each.path).parent.name for each in found] == ["7"] * 4
    assert [each.score for each in found] == sorted((e.score for e in found), reverse=True)
    with ImageIndex("i") as opened:
        assert len(opened) == 60
        given: list[Any] = [str(paths[3]), paths[3], Image.open(paths[3])]
        given.append(np.asarray(Image.open(paths[3])))
        answers = [opened.search(each, top=2) for each in given]
    assert answers[1:] == answers[:-1]
    assert answers[0][0].path == str(paths[3])
    assert answers[0][0].score == pytest.approx(1)


def test_equal_to_brute_force(tmp_path: Path) -> None:
    """All images, in order, by cosines computed one by one; equal contents in order of names."""
    write_digits(tmp_path / "digits", 120)
    for number in range(0, 120, 7):
        first = next((tmp_path / "digits").rglob(f"{number:04d}.png"))
        shutil.copy(first, tmp_path / "digits" / f"copy-{number}.png")
    index("digits")
    vectors = {
        name: np.frombuffer(v, "<f4").astype(float) for name, v in content(Path("i")).items()
    }
    with ImageIndex("i") as opened:
        for text in ("seven", "two nine", "no digit"):
            (query,) = opened.embedder.embed_texts([text])
            cosines = {name: float(vector @ query) for name, vector in vectors.items()}
            found = opened.search(text, top=1000)
            assert {each.path: each.score for each in found} == pytest.approx(cosines, abs=1e-12)
            assert [each.score for each in found] == pytest.approx(
                sorted(cosines.values(), reverse=True), abs=1e-12
            )
            assert [found[:5], found[:1]] == [opened.search(text, top=n) for n in (5, 1)]


def test_one_answer_a_query(tmp_path: Path) -> None:
    """What cannot be read is told in its place; a kind may be forced."""
    (path, *_) = write_digits(tmp_path / "digits", 20)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG")
    (tmp_path / "seven").write_text("a file that is no image")
    index("digits")
    with ImageIndex("i") as opened:
        queries = ("seven", str(path), "none.png", "broken.png", "")
        answers = opened.answer(ImageSearchRequest(queries=queries, top=1))
        assert [each.query for each in answers] == list(queries)
        assert [each.kind for each in answers] == ["text", *["image"] * 3, "text"]
        assert [each.images is None for each in answers] == [False, False, *[True] * 3]
        assert answers[2].error == "There is no file none.png. If these are words: `kind=text`."
        error = str(answers[3].error)
        assert "broken.png cannot be read as an image" in error
        assert "recipe" not in error  # nothing is trained here
        assert str(answers[4].error).startswith("The query is empty")
        (forced,) = opened.answer(ImageSearchRequest(queries=(str(path),), kind="text"))
        assert forced.kind == "text"
        assert forced.images is not None
        with pytest.raises(NotFoundError, match="no file two"):
            opened.search("two", kind="image")
        with pytest.raises(UnreadableError, match="seven cannot be read"):
            opened.search("seven", kind="image")
        with pytest.raises(NotFoundError, match="no file two"):
            opened.search(Path("two"))
        with pytest.raises(UsageError, match="query is 3: give a text"):
            opened.search(3)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="`top` = 0"):
            opened.search("two", top=0)
        with pytest.raises(UsageError, match=r"`kind` is 'txt'.*Allowed: text, image"):
            opened.search("two", kind="txt")  # type: ignore[arg-type]
        with pytest.raises(DataError, match="the query"):
            opened.search("caf\udce9")


def test_names_count_as_well(tmp_path: Path, old: None) -> None:
    """A three that is called seven is found by either word; a new name is another vector."""
    paths = write_digits(tmp_path / "digits", 40)
    three = next((tmp_path / "digits" / "3").iterdir())
    seven = three.rename(three.with_name("lucky-Seven_seven.png"))
    index("digits", names=True)
    with ImageIndex("i") as opened:
        image = opened.embedder.embed_images([seven])[0]
        text = opened.embedder.embed_texts(["lucky Seven seven"])[0]
        for word in ("seven", "three"):
            cosine = float((image + text) @ opened.embedder.embed_texts([word])[0])
            (found,) = (e for e in opened.search(word, top=40) if e.path == str(seven))
            assert found.score == pytest.approx(cosine / np.linalg.norm(image + text), abs=1e-6)
            assert found.score > 0.5
    mean = (image + text) / np.linalg.norm(image + text)
    stored = {path: np.frombuffer(v, "<f4") for path, v in content(Path("i")).items()}
    assert stored[str(seven)] == pytest.approx(mean, abs=1e-6)
    # Names without words say nothing. What was made with names stays so.
    other = next(path for path in paths if path != three)
    alone = opened.embedder.embed_images([other])[0]
    assert stored[str(other)] == pytest.approx(alone, abs=1e-6)
    seven.rename(three.with_name("two.png"))
    assert counts(index("digits", prune=True)) == {
        "unchanged": 39,
        "added": 1,
        "removed": 1,
        "embedded": 1,
    }
    assert "two.png" in {Path(e.path).name for e in manyheads.search("two", index="i", top=6)}
    assert counts(index("digits", names=True)) == {"unchanged": 40}


def test_labels_are_names(tmp_path: Path, old: None) -> None:
    """Of rows; an image with another label has another vector, and without labels its own."""
    paths = write_digits(tmp_path / "digits", 3)
    table(tmp_path / "t.parquet", [paths[0]] * 2, name=["seven", "two"])
    assert index("t.parquet", label_column="name", names=True).embedded == 2
    for word in ("seven", "two"):
        assert manyheads.search(word, index="i", top=1)[0].label == word
    assert counts(index("t.parquet")) == {"changed": 2, "embedded": 1}
    # Of a table of paths, whose files have not changed.
    for word in ("seven", "two"):
        (tmp_path / "l.csv").write_text(f"image,name\n{paths[1]},{word}\n")
        index("l.csv", label_column="name", names=True, out="j")
        with ImageIndex("j") as opened:
            image, text = (
                opened.embedder.embed_images([paths[1]]),
                opened.embedder.embed_texts([word]),
            )
            cosine = float((image[0] + text[0]) @ text[0] / np.linalg.norm(image[0] + text[0]))
            assert opened.search(word, top=1)[0].score == pytest.approx(cosine, abs=1e-6)


def test_an_index_without_names_stays_so(tmp_path: Path) -> None:
    """Its vectors would be of two kinds."""
    write_digits(tmp_path / "digits", 3)
    index("digits")
    assert json.loads(Path("i/index.json").read_text())["format_version"] == 1
    before = content(Path("i"))
    with pytest.raises(UsageError, match=r"The index i was made without names\. Leave `names` out"):
        index("digits", names=True)
    assert content(Path("i")) == before
    index("digits", names=True, out="j")  # which earlier versions would mix
    assert json.loads(Path("j/index.json").read_text())["format_version"] == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("GRÖSSE.png", "GRÖSSE"),
        ("nackterFuß-links.webp", "nackter Fuß links"),
        ("cafe\u0301.jpg", "café"),  # as macOS writes it
        ("हिन्दी.png", "हिन्दी"),
        ("don't_stop(2).gif", "don't stop 2"),
        ("bad\udcff.png", "bad"),
        ("2024-01-02.jpg", ""),
        ("cat", ""),
    ],
)
def test_words_of_names(name: str, words: str) -> None:
    """Of any script and file system; a date is none."""
    assert words_of(name) == words


# --- Keeping an index up to date ----------------------------------------------------------------


def test_only_what_is_new_is_embedded(tmp_path: Path, embedded: list[int], old: None) -> None:
    """Twice the same; then more images."""
    write_digits(tmp_path / "digits", 40)
    assert counts(index("digits")) == {"added": 40, "embedded": 40}
    assert counts(index("digits")) == {"unchanged": 40}
    write_digits(tmp_path / "digits", 10, first=40)
    assert counts(index("digits")) == {"unchanged": 40, "added": 10, "embedded": 10}
    assert embedded == [32, 8, 10]


def test_a_file_that_was_moved_keeps_its_vector(tmp_path: Path, embedded: list[int]) -> None:
    """By its content: renamed, copied, and gone for a while."""
    paths = write_digits(tmp_path / "digits", 5)
    index("digits")
    paths[0].rename(tmp_path / "digits" / "renamed.png")
    shutil.copy(paths[1], tmp_path / "digits" / "copied.png")
    assert counts(index("digits", prune=True)) == {"unchanged": 4, "added": 2, "removed": 1}
    shutil.move(tmp_path / "digits", tmp_path / "elsewhere")
    assert counts(index("elsewhere", prune=True)) == {"added": 6, "removed": 6}
    assert sum(embedded) == 5
    assert (tmp_path / "i" / "vectors.f32").stat().st_size == 5 * 40


def test_a_changed_file_is_not_found_by_what_it_was(tmp_path: Path, old: None) -> None:
    """Even if it has the size and the time of before."""
    paths = write_digits(tmp_path / "digits", 40)
    for path in paths:
        Image.open(path).save(path.with_suffix(".bmp"))  # all of the same size
        path.unlink()
    zero, one = (next((tmp_path / "digits" / name).iterdir()) for name in "01")
    index("digits")
    times = zero.stat()
    kept = zero.read_bytes()
    while zero.stat().st_ctime_ns == times.st_ctime_ns:  # a clock may be coarse
        zero.write_bytes(one.read_bytes())
        os.utime(zero, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert zero.stat().st_size == times.st_size
    # With the content of the other, which is known.
    assert counts(index("digits")) == {"unchanged": 39, "changed": 1}
    found = manyheads.search(one, index="i", top=2)
    assert {each.path for each in found} == {str(zero), str(one)}
    assert str(zero) not in {each.path for each in manyheads.search("zero", index="i", top=3)}
    # With a new content, and then as it was: nothing has to be embedded.
    Image.new("L", (8, 8), 255).save(zero)
    assert counts(index("digits")) == {"unchanged": 39, "changed": 1, "embedded": 1}
    zero.write_bytes(kept)
    assert counts(index("digits")) == {"unchanged": 39, "changed": 1}


def test_files_are_read_again_on_demand(
    tmp_path: Path, old: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file system does not tell that a file has changed."""
    (path, *_) = write_digits(tmp_path / "digits", 3)
    index("digits")
    monkeypatch.setattr("manyheads.image_search.index_writer.state_of", lambda *_: "same")
    index("digits")
    Image.new("L", (8, 8)).save(path)
    assert counts(index("digits")) == {"unchanged": 3}
    assert counts(index("digits", reread=True)) == {"unchanged": 2, "changed": 1, "embedded": 1}


def test_a_file_that_has_just_changed_is_read_again(tmp_path: Path, embedded: list[int]) -> None:
    """It could have changed once more within the same tick of the clock."""
    write_digits(tmp_path / "digits", 3)
    index("digits")
    folder = IndexFolder(tmp_path / "i")
    states = [folder.image(str(path)) for path in sorted((tmp_path / "digits").rglob("*.png"))]
    folder.close()
    assert [each.state for each in states if each is not None] == [None] * 3


def test_images_that_are_gone(tmp_path: Path) -> None:
    """They are found, and said to be gone; `prune` removes them, also without other images."""
    paths = write_digits(tmp_path / "digits", 30)
    index("digits")
    zero = manyheads.search("zero", index="i", top=1)[0]
    assert zero.gone is None
    Path(zero.path).unlink()
    assert manyheads.search("zero", index="i", top=1)[0] == zero.model_copy(update={"gone": True})
    assert counts(index("digits")) == {"unchanged": 29, "gone": 1}
    assert counts(manyheads.index([], out="i", prune=True)) == {"removed": 1}
    assert zero.path not in {each.path for each in manyheads.search("zero", index="i", top=30)}
    assert len(manyheads.search("zero", index="i", top=100)) == len(paths) - 1
    with pytest.raises(UsageError, match="no images to index: name some, or set `prune=True`"):
        manyheads.index([], out="i")


def test_an_open_index_sees_what_is_added(tmp_path: Path) -> None:
    """By itself, and by others; and what is removed."""
    write_digits(tmp_path / "digits", 10)
    index("digits")
    with ImageIndex("i") as opened:
        assert len(opened.search("seven", top=100)) == 10
        write_digits(tmp_path / "more", 10, first=10)
        assert opened.add("more").added == 10
        assert len(opened.search("seven", top=100)) == 20
        index(*write_digits(tmp_path / "more", 5, first=20))
        assert len(opened.search("seven", top=100)) == len(opened) == 25
        shutil.rmtree("more")
        index("digits", prune=True)
        assert len(opened.search("seven", top=100)) == len(opened) == 10


def test_several_threads_search_one_index(tmp_path: Path) -> None:
    """As a server does."""
    write_digits(tmp_path / "digits", 30)
    index("digits")
    with ImageIndex("i") as opened:
        (vector,) = opened.embedder.embed_texts(["seven"])
        expected = opened.search_vectors(vector[None])
        found: list[Any] = []
        threads = [
            threading.Thread(target=lambda: found.append(opened.search_vectors(vector[None])))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [expected] * 8


# --- What is indexed ----------------------------------------------------------------------------


def table(path: Path, images: list[Path], **columns: list[str]) -> None:
    """Write a parquet file of images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"image": [each.read_bytes() for each in images], **columns}), path)


def test_rows_of_a_table(tmp_path: Path) -> None:
    """With a label; rows that a later version of the table has no more are not found."""
    paths = write_digits(tmp_path / "digits", 12)
    names = [f"number {n}" for n in range(12)]
    table(tmp_path / "t.parquet", paths, name=names)
    assert counts(index("t.parquet", label_column="name")) == {"added": 12, "embedded": 12}
    assert counts(index("t.parquet", label_column="name")) == {"unchanged": 12}
    (found,) = manyheads.search(paths[4], index="i", top=1)
    assert (found.path, found.label) == (f"{tmp_path / 't.parquet'}, row 5", "number 4")
    table(tmp_path / "t.parquet", [paths[11], *paths[1:9]], name=names[:9])
    answer = index("t.parquet", label_column="name")
    assert counts(answer) == {"unchanged": 8, "changed": 1, "removed": 3}
    assert counts(index("t.parquet")) == {"unchanged": 9}
    assert manyheads.search(paths[4], index="i", top=1)[0].label is None
    (tmp_path / "t.parquet").unlink()
    assert manyheads.search(paths[4], index="i", top=1)[0].gone
    table(tmp_path / "t.parquet", paths, name=names)
    with pytest.raises(DataError, match=r"It has image, name\. Name them with `image_column` and"):
        index("t.parquet", image_column="picture")


def test_archives_and_lists(tmp_path: Path) -> None:
    """A .tar, a .csv of paths, and the images of the list as files: these are the same."""
    paths = write_digits(tmp_path / "digits", 6)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for path in paths[:4]:
            archive.add(path, path.name)
    (tmp_path / "lists").mkdir()
    lines = ["image", *(f"../{path.relative_to(tmp_path)}" for path in paths[2:])]
    (tmp_path / "lists" / "l.csv").write_text("\n".join(lines))
    assert counts(index("a.tar")) == {"added": 4, "embedded": 4}
    assert counts(index("lists/l.csv")) == {"added": 4, "embedded": 2}
    answer = index("digits", "digits/../digits", paths[0], tmp_path / "a.tar")
    assert counts(answer) == {"unchanged": 8, "added": 2}
    found = manyheads.search(paths[2], index="i", top=3)
    first, second = found[0].path, found[1].path
    assert [first, second] == [f"{tmp_path}/a.tar: {paths[2].name}", str(paths[2])]


def test_images_without_files(tmp_path: Path) -> None:
    """They are never gone."""
    pytest.importorskip("sklearn")
    assert counts(index("digits")) == {"added": 1797, "embedded": 1797}
    found = manyheads.search("seven", index="i", top=1)[0]
    assert found.path.startswith("digit ")
    assert found.gone is None
    assert counts(manyheads.index([], out="i", prune=True)) == {}


def test_images_that_cannot_be_read(tmp_path: Path, old: None) -> None:
    """They are named, the others indexed; one that was readable is not found any more."""
    paths = write_digits(tmp_path / "digits", 5)
    (tmp_path / "digits" / "empty.png").write_bytes(b"")
    (tmp_path / "digits" / "photo.heic").write_bytes(b"\0\0\0\x18ftypheic")
    (tmp_path / "digits" / "text.jpg").write_text("text")
    for _ in range(2):
        answer = index("digits")
        assert [Path(each.path).name for each in answer.unreadable] == [
            "empty.png",
            "photo.heic",
            "text.jpg",
        ]
        assert "it is HEIC, which is not read: convert it to JPEG." in answer.unreadable[1].error
    paths[0].write_bytes(paths[0].read_bytes()[:60])
    answer = index("digits")
    assert counts(answer) == {"unchanged": 4, "removed": 1}
    assert answer.unreadable[0].path == str(paths[0])
    assert str(paths[0]) not in content(tmp_path / "i")


def test_one_image_of_a_batch_that_the_model_cannot_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of other channels, or with a vector that is not finite: the others are indexed."""
    write_digits(tmp_path / "digits", 5)
    np.save(tmp_path / "digits" / "seven.npy", np.zeros((8, 8, 7), dtype=np.uint8))
    answer = index("digits")
    assert answer.added == 5
    assert [Path(each.path).name for each in answer.unreadable] == ["seven.npy"]
    assert "channels" in answer.unreadable[0].error

    def not_finite(self: Classifier, images: Any) -> np.ndarray:
        vectors = embed_images(self, images)
        vectors[0] = np.nan
        return vectors

    monkeypatch.setattr(Classifier, "embed_images", not_finite)
    (tmp_path / "digits" / "seven.npy").unlink()
    answer = index("digits", out="j")
    assert answer.added == 4
    assert "the model's vector of it is not finite" in answer.unreadable[0].error


def test_unusual_images(tmp_path: Path) -> None:
    """One pixel, 30,000 pixels wide, animated, transparent, 16 bits."""
    folder = tmp_path / "odd"
    folder.mkdir()
    Image.new("L", (1, 1), 200).save(folder / "pixel.png")
    Image.new("RGB", (30_000, 9), "red").save(folder / "wide.png")
    Image.new("RGB", (9, 30_000), "red").save(folder / "high.png")
    frames = [Image.new("L", (8, 8), value) for value in (0, 255)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    Image.new("RGBA", (8, 8)).save(folder / "clear.png")
    Image.fromarray(np.full((8, 8), 40_000, dtype=np.uint16)).save(folder / "deep.png")
    assert counts(index("odd")) == {"added": 6, "embedded": 6}


def test_the_pixels_of_a_batch_are_limited(
    tmp_path: Path, embedded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large photos are not all in memory at once."""
    write_digits(tmp_path / "digits", 10)
    monkeypatch.setattr("manyheads.image_search.index_writer.PIXELS", 3 * 64)
    index("digits")
    assert embedded == [4, 4, 2]


# --- Refusals -----------------------------------------------------------------------------------


def test_a_model_without_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with what it is for, and which tasks fit."""
    write_digits(tmp_path / "digits", 3)
    monkeypatch.undo()
    for model in ("digits", manyheads.load("digits")):
        with pytest.raises(
            UsageError, match=r"digits cannot be searched with: .*Its task is"
        ) as told:
            manyheads.index(tmp_path / "digits", out=tmp_path / "i", model=model)
        assert "manyheads classify --model digits" in str(told.value)
        assert "Tasks whose models can: 'match'; shipped models: " in str(told.value)
    wrong: Any = 3
    with pytest.raises(UsageError, match="`model` is 3: give the name of a model"):
        manyheads.index(tmp_path / "digits", out=tmp_path / "i", model=wrong)
    assert not (tmp_path / "i").exists()


def test_another_model_than_that_of_the_index(tmp_path: Path, classifier: Path) -> None:
    """Both are named, whether it is asked for or took the place of the first."""
    write_digits(tmp_path / "digits", 3)
    own = shutil.copytree(manyheads.load("digits").folder.path, tmp_path / "own")
    manyheads.index("digits", out="i", model=own)
    before = content(Path("i"))
    for call in (
        lambda: manyheads.search("two", index="i", model=classifier),
        lambda: manyheads.index("digits", out="i", model=classifier),
    ):
        with pytest.raises(FolderError, match="vectors of two models cannot be compared") as told:
            call()
        assert str(own) in str(told.value)
        assert str(classifier) in str(told.value)
    # The same weights are the same model, wherever they are.
    assert len(manyheads.search("two", index="i", model="digits")) == 3
    assert manyheads.index("digits", out="i", model="digits").unchanged == 3
    own.rename(tmp_path / "moved")
    with pytest.raises(NotFoundError, match=r"model of the index i is not there any more: .*/own"):
        manyheads.search("two", index="i")
    shutil.copytree(classifier, own)
    with pytest.raises(FolderError, match="vectors of two models cannot be compared"):
        manyheads.search("two", index="i")
    assert content(Path("i")) == before


def test_an_index_fetches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come from anywhere, and say anything."""
    write_digits(tmp_path / "digits", 3)
    index("digits")
    header = json.loads(Path("i/index.json").read_text())
    Path("i/index.json").write_text(json.dumps(header | {"model": "hf:someone/else"}))
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        with pytest.raises(NotFoundError, match="not there any more: hf:someone/else"):
            manyheads.search("two", index="i")
        with pytest.raises(NotFoundError, match="not there any more: hf:someone/else"):
            ImageIndex("i")
    assert hub.tokens == {}  # nothing was asked


@pytest.mark.parametrize(
    "wrong", [np.ones((3, 10)), np.zeros((3, 10)), np.eye(3, 7), np.eye(2, 10)]
)
def test_a_model_with_wrong_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: np.ndarray
) -> None:
    """Of another length, width or number: not written into an index of 10 numbers."""
    write_digits(tmp_path / "digits", 5)
    index("digits")
    write_digits(tmp_path / "digits", 3, first=5)
    before = content(Path("i"))
    monkeypatch.setattr(Classifier, "embed_images", lambda *_: wrong.astype(np.float32))
    with pytest.raises(UsageError, match="digits gave a"):
        index("digits")
    assert content(Path("i")) == before


def test_no_images(tmp_path: Path) -> None:
    """No index is left behind."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_text("text")
    with pytest.raises(DataError, match="empty has no images"):
        index("empty")
    with pytest.raises(DataError, match=r"None of 1 images can be read.*bad/a.png cannot be read"):
        index("bad")
    with pytest.raises(NotFoundError, match="There is no 'nothing', neither in the current folder"):
        index("nothing")
    assert not (tmp_path / "i").exists()
    with pytest.raises(NotFoundError, match="i is no index of images: it is not there"):
        manyheads.search("two", index="i")


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    write_digits(tmp_path / "digits", 3)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="digits is not empty, and no index"):
        index("digits", out="digits")
    assert sorted(tmp_path.rglob("*")) == before


def test_two_writers(tmp_path: Path) -> None:
    """The second is refused, and told who is first; searching goes on."""
    write_digits(tmp_path / "digits", 3)
    index("digits")
    with locked(tmp_path / "i", "adds images"):
        with pytest.raises(UsageError, match=rf"is in use: process {os.getpid()} .* adds images"):
            index("digits")
        assert len(manyheads.search("two", index="i")) == 3
    assert index("digits").unchanged == 3


def test_a_damaged_vector(tmp_path: Path) -> None:
    """It is not sorted among the others."""
    write_digits(tmp_path / "digits", 3)
    index("digits")
    with (tmp_path / "i" / "vectors.f32").open("r+b") as file:
        file.seek(40)
        file.write(np.float32(np.nan).tobytes())
    with pytest.raises(FolderError, match="index i is damaged: the scores of a query are nan"):
        manyheads.search("two", index="i")


def test_later_versions(tmp_path: Path) -> None:
    write_digits(tmp_path / "digits", 3)
    index("digits")
    header = tmp_path / "i" / "index.json"
    header.write_text(json.dumps(json.loads(header.read_text()) | {"format_version": 9}))
    for call in (lambda: index("digits"), lambda: manyheads.search("two", index="i")):
        with pytest.raises(FolderError, match=r"i/index\.json has format_version 9"):
            call()


# --- Interruption -------------------------------------------------------------------------------


@pytest.fixture
def stop_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let a signal come when it was asked for some times."""

    def prepare(times: int) -> None:
        asked = iter(range(1000))

        @contextmanager
        def signals() -> Iterator[Any]:
            yield lambda: next(asked) >= times

        monkeypatch.setattr("manyheads.image_search.image_index.stop_signals", signals)

    return prepare


def test_what_is_done_is_saved_when_it_is_stopped(
    tmp_path: Path, embedded: list[int], stop_after: Any
) -> None:
    write_digits(tmp_path / "digits", 100)
    stop_after(1)
    with pytest.raises(InterruptedRunError, match="Stopped after 64 of 100 images, which are"):
        index("digits")
    assert len(content(tmp_path / "i")) == 64
    stop_after(1000)
    assert counts(index("digits")) == {"added": 36, "unchanged": 64, "embedded": 36}
    assert sum(embedded) == 100


def test_what_is_done_is_saved_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that does not suffice, or a bug of a model: any error."""
    write_digits(tmp_path / "digits", 100)
    calls = iter(range(10))

    def fails(self: Classifier, images: Any) -> np.ndarray:
        if next(calls) == 2:
            raise MemoryError
        return embed_images(self, images)

    monkeypatch.setattr(Classifier, "embed_images", fails)
    with pytest.raises(MemoryError):
        index("digits")
    assert len(content(tmp_path / "i")) == 64


def test_progress_is_told(tmp_path: Path) -> None:
    write_digits(tmp_path / "digits", 70)
    told: list[tuple[int, int]] = []
    index("digits", progress=lambda done, total, line: told.append((done, total)))
    assert told == [(32, 70), (64, 70), (70, 70)]


def test_commits_are_a_second_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock: a killed process loses no more than that."""
    write_digits(tmp_path / "digits", 128)
    rows: list[int] = []
    clock = iter(np.arange(0, 1000, 0.3))
    # Only for the writer: timers of other threads, such as a server's, would never end.
    watch = SimpleNamespace(monotonic=lambda: next(clock), time_ns=time.time_ns)
    monkeypatch.setattr(writer, "time", watch)
    commit = IndexFolder.commit

    def counted(self: IndexFolder, vectors: np.ndarray, *rest: Any) -> None:
        rows.append(len(vectors))
        commit(self, vectors, *rest)

    monkeypatch.setattr(IndexFolder, "commit", counted)
    index("digits")
    assert sum(rows) == 128
    assert len(rows) > 1
