"""manyheads check-data, as its users call it."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import squares
from tests.cli.conftest import Answer, Call
from tests.data.damaged import pairs, tsv, two_files
from tests.made import (
    CLASSIFY,
    TRANSLATE,
    read_jsonl,
    write_halves,
    write_lines,
    write_numbers,
    write_recipe,
)

ENDE = ("--source", "en", "--target", "de")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Pairs with an empty target, a repeated pair, a shy space and Latin-1 read as UTF-8."""
    texts = pairs(30)
    texts[4] = (texts[4][0], "")
    texts[9] = texts[2]
    texts[14] = (texts[14][0], f" {texts[14][1]} fÃ¼r")
    (tmp_path / "corpora").mkdir()
    return two_files(tmp_path / "corpora", texts)


def test_a_corpus_without_fault(call: Call, tmp_path: Path) -> None:
    """Said in one line; exit code 0."""
    two_files(tmp_path, pairs())
    code, out, err = call("check-data", "a", *ENDE)
    assert (code, err) == (0, "")
    assert out == f"{tmp_path / 'a'}.{{en,de}}: 60 pairs, nothing to complain of\n"


def test_findings_fit_a_terminal(
    call: Call, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of 80 columns: severity, count, lines, what and what to do; exit code 1."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call("check-data", damaged, *ENDE)
    assert code == 1
    heading, *table = out.splitlines()
    assert heading == f"{damaged}.{{en,de}}: 29 pairs, 1 error, 2 warnings, 1 note"
    assert all(len(line) <= 80 for line in table)
    words = " ".join(" ".join(table).split())
    assert "error 1 5 one side is empty (target) [empty-side]" in words
    assert "warning 1 10 the pair is a duplicate [duplicate-pair]" in words
    assert "Read the original as UTF-8; --fix reverses it." in words


def test_findings_as_json(call: Call, damaged: Path) -> None:
    """One document with everything; the exit code is the same."""
    code, out, _ = call("check-data", damaged, *ENDE, "--json")
    (corpus,) = json.loads(out)["corpora"]
    assert code == 1
    assert (corpus["pairs"], corpus["errors"]) == (29, 1)
    found = {finding["kind"]: finding for finding in corpus["findings"]}
    assert found.keys() == {"empty-side", "duplicate-pair", "mojibake", "spacing"}
    assert found["mojibake"]["lines"] == [15]
    assert found["mojibake"]["sides"] == "target"
    assert found["mojibake"]["example"].endswith("fÃ¼r")


def test_overlap_with_other_splits(call: Call, tmp_path: Path) -> None:
    """--test and --valid name what must not be in it; the forms may differ."""
    two_files(tmp_path, pairs(30))
    (tmp_path / "test.tsv").write_bytes(tsv(pairs(30)[3:5]))
    (tmp_path / "dev.csv").write_bytes(b"en,de\n" + tsv(pairs(30)[7:8]).replace(b"\t", b","))
    answer = call("check-data", "a", *ENDE, "--test", "test.tsv", "--valid", "dev.csv", "--json")
    assert answer.code == 0
    found = {f["kind"]: f["lines"] for f in json.loads(answer.out)["corpora"][0]["findings"]}
    assert found == {"test-overlap-pair": [4, 5], "valid-overlap-pair": [8]}


def test_a_recipe(call: Call, tmp_path: Path) -> None:
    """Its training, validation and test data, each against those it must not overlap with."""
    write_numbers(tmp_path, train=200)
    folder = tmp_path / "numbers"
    for ending in (".en", ".de"):
        first = (folder / f"test{ending}").read_bytes().splitlines(keepends=True)[0]
        with (folder / f"valid{ending}").open("ab") as valid:
            valid.write(first)
    recipe = write_recipe(tmp_path / "own.toml", TRANSLATE, tmp_path)
    code, out, _ = call("check-data", recipe, "--json")
    assert code == 0
    train, valid, test = json.loads(out)["corpora"]
    assert [each["name"] for each in (train, valid, test)] == [
        "numbers/train",
        "numbers/valid",
        "numbers/test",
    ]
    assert [f["kind"] for f in valid["findings"]] == ["test-overlap-pair"]
    assert valid["findings"][0]["lines"] == [9]
    assert test["findings"] == []
    text = Path(recipe).read_text(encoding="utf-8")
    more = text.replace("[data]", '[data]\nadditional = ["numbers/test"]', 1)
    Path(recipe).write_text(more, encoding="utf-8")
    code, out, _ = call("check-data", recipe, "--json")
    train, additional, *_ = json.loads(out)["corpora"]
    assert code == 0
    assert train["name"] == "numbers/train"
    assert {f["kind"] for f in additional["findings"]} >= {"test-overlap-pair"}
    assert call("check-data", "date-en-ko", "--source", "en").code == 2
    assert call("check-data", "digits").code == 0  # images have checks of their own


# --- --fix --------------------------------------------------------------------------------------


def test_sides_named_the_wrong_way_round(call: Call, tmp_path: Path) -> None:
    """Said once; what is written is turned, and nothing is dropped as another language."""
    pairs = [("This is what they have now.", "Luisa singt nun."), ("We are here.", "Wir sind da.")]
    lines = [f"{one} {n}\t{other} {n}\n" for n in range(30) for one, other in pairs]
    (tmp_path / "a.tsv").write_text("".join(lines), encoding="utf-8")
    answer = call("check-data", "a.tsv", "--source", "de", "--target", "en", "--fix", "b.tsv")
    assert (answer.code, answer.out.count("[swapped-sides]")) == (1, 1)
    assert "60 pairs kept, 60 of them changed; 0 dropped" in answer.out
    turned = [f"{line[1]}\t{line[0]}" for line in (each.rstrip("\n").split("\t") for each in lines)]
    assert (tmp_path / "b.tsv").read_text(encoding="utf-8").splitlines()[-60:] == turned


def test_fix_writes_what_is_left_and_a_log(call: Call, damaged: Path, tmp_path: Path) -> None:
    """The cleaned corpus has no finding; the log has a line for each change; the input stays."""
    before = {path: path.read_bytes() for path in damaged.parent.iterdir()}
    code, out, _ = call("check-data", damaged, *ENDE, "--fix", "clean/b")
    assert code == 1  # there were errors
    assert "28 pairs kept, 1 of them changed; 2 dropped" in out
    assert {path: path.read_bytes() for path in damaged.parent.iterdir()} == before
    log = read_jsonl(tmp_path / "clean" / "b.log.jsonl")
    assert [(entry["line"], entry["action"], entry["reason"]) for entry in log] == [
        (5, "dropped", "empty-side"),
        (10, "dropped", "duplicate-pair"),
        (15, "changed", "mojibake, spacing"),
    ]
    assert log[2]["text"].endswith("fÃ¼r")
    assert log[2]["becomes"].endswith("für")
    assert call("check-data", "clean/b", *ENDE).out.endswith("28 pairs, nothing to complain of\n")


@pytest.mark.parametrize("out", ["/", ".", "..", "there", "nowhere/.."])
def test_fix_needs_a_name(call: Call, damaged: Path, tmp_path: Path, out: str) -> None:
    """Nothing is written beside a folder, under names such as "...en"."""
    (tmp_path / "there").mkdir()
    before = {*tmp_path.rglob("*"), *tmp_path.parent.iterdir()}
    code, _, err = call("check-data", damaged, *ENDE, "--fix", out)
    assert (code, f"--fix is {str(Path(out))!r}" in err) == (2, True)
    assert {*tmp_path.rglob("*"), *tmp_path.parent.iterdir()} == before


def test_fix_as_json(call: Call, damaged: Path, tmp_path: Path) -> None:
    """The same counts for programs."""
    fixed = json.loads(call("check-data", damaged, *ENDE, "--fix", "b.tsv", "--json").out)["fixed"]
    assert fixed == {
        "files": ["b.tsv"],
        "log": "b.tsv.log.jsonl",
        "kept": 28,
        "changed": 1,
        "dropped": 2,
    }


@pytest.mark.parametrize("out", ["b.tsv", "b.jsonl.gz", "b.csv", "b.gz"])
def test_fix_writes_other_forms(call: Call, damaged: Path, tmp_path: Path, out: str) -> None:
    """By the ending of OUT."""
    assert call("check-data", damaged, *ENDE, "--fix", out).code == 1
    checked = call("check-data", "b" if out == "b.gz" else out, *ENDE)
    assert checked.out.endswith("28 pairs, nothing to complain of\n")
    assert (tmp_path / f"{out}.log.jsonl").exists()


def refused(answer: Answer, code: int, *words: str) -> None:
    assert (answer.code, answer.out) == (code, answer.out)
    for word in words:
        assert word in answer.err


def test_fix_writes_nothing_over(call: Call, damaged: Path, tmp_path: Path) -> None:
    """Neither a corpus nor a log, least of all the input."""
    early = call("check-data", damaged, *ENDE, "--fix", damaged)
    refused(early, 2, "a.en exists")
    assert not early.out  # before the corpus was read
    (tmp_path / "b.log.jsonl").write_text("mine")
    refused(call("check-data", damaged, *ENDE, "--fix", "b"), 2, "b.log.jsonl exists")
    refused(
        call("check-data", damaged, *ENDE, "--fix", "b.parquet"),
        2,
        ".parquet files can be read, but not written",
    )
    refused(call("check-data", damaged, damaged, *ENDE, "--fix", "c"), 2, "one corpus at a time")
    assert {path.name for path in tmp_path.iterdir()} == {"corpora", "b.log.jsonl"}


def test_unequal_counts_are_not_fixed(call: Call, tmp_path: Path) -> None:
    """Which lines belong together is not known: the message says to repair the place first."""
    two_files(tmp_path, pairs(100))
    lines = (tmp_path / "a.de").read_bytes().splitlines(keepends=True)
    (tmp_path / "a.de").write_bytes(b"".join(lines[:40] + lines[41:]))
    answer = call("check-data", "a", *ENDE, "--fix", "b")
    refused(answer, 1, "nothing is written")
    assert "[unequal-counts]" in answer.out
    assert "[shifted-lines]" in answer.out
    assert {path.name for path in tmp_path.iterdir()} == {"a.en", "a.de"}


def _cut_off() -> str:
    content = gzip.compress(tsv(pairs(2000)))
    Path("c.tsv.gz").write_bytes(content[: len(content) // 2])
    return "c.tsv.gz"


def _one_side_empty() -> str:
    two_files(Path(), pairs())
    Path("a.de").write_bytes(b"")
    return "a"


def _no_header() -> str:
    Path("c.csv").write_bytes(tsv(pairs()).replace(b"\t", b","))
    return "c.csv"


def _other_header() -> str:
    Path("c.csv").write_bytes(b"text,German\n" + tsv(pairs()).replace(b"\t", b","))
    return "c.csv"


@pytest.mark.parametrize("damage", [_cut_off, _one_side_empty, _no_header, _other_header])
def test_what_cannot_be_mended_is_not_written(
    call: Call, tmp_path: Path, damage: Callable[[], str]
) -> None:
    """What is left of a file that is cut off, empty or without header is not the corpus."""
    name = damage()
    before = set(tmp_path.iterdir())
    answer = call("check-data", name, *ENDE, "--fix", "b.tsv")
    refused(answer, 1, "nothing is written")
    assert set(tmp_path.iterdir()) == before


def test_fix_does_not_shift_pairs(call: Call, tmp_path: Path) -> None:
    """A text with a tab in it is dropped, not cut; unnamed columns are asked for."""
    Path("a.tsv").write_bytes(tsv(pairs(20)).replace(b" ", b"\t", 1))
    answer = call("check-data", "a.tsv", *ENDE, "--fix", "b.tsv")
    assert answer.code == 1
    assert "[extra-column]" in answer.out
    assert Path("b.tsv").read_bytes() == tsv(pairs(20)[1:])
    Path("c.tsv").write_bytes(b"".join(b"7\t" + line for line in tsv(pairs(20)).splitlines(True)))
    answer = call("check-data", "c.tsv", *ENDE, "--fix", "d.tsv")
    refused(answer, 1, "no pair can be read, so nothing is written")
    assert not Path("d.tsv").exists()


@pytest.mark.parametrize("content", [b"en,de\n", b"en,de\n\n\n"])
def test_a_corpus_without_a_pair(call: Call, content: bytes) -> None:
    """Nothing to complain of is not what is said of nothing."""
    Path("a.csv").write_bytes(content)
    assert call("check-data", "a.csv", *ENDE).code == 1


# --- Calls that are wrong ------------------------------------------------------------------------


def test_languages_are_asked_for(call: Call, damaged: Path) -> None:
    """With what lies there; a .tsv does without, as its columns are known."""
    refused(call("check-data", damaged), 2, "There are a.de, a.en", "--source and --target")
    refused(call("check-data", f"{damaged}.en", *ENDE), 2, "one side of a corpus", f"{damaged}.")
    Path("b.tsv").write_bytes(tsv(pairs()))
    assert call("check-data", "b.tsv").out == "b.tsv: 60 pairs, nothing to complain of\n".replace(
        "b.tsv", str(Path("b.tsv").absolute())
    )


def test_names_that_are_not_there(call: Call) -> None:
    """All places looked at; no pattern."""
    refused(call("check-data", "none", *ENDE), 2, "There is no data 'none'", "with .en and .de")
    refused(call("check-data", "none.tsv"), 2, "There is no data 'none.tsv'")
    refused(call("check-data", "*.tsv"), 2, "is a pattern")
    refused(call("check-data", "none.toml"), 2, "There is no recipe")


def test_columns(call: Call) -> None:
    """By number in a file without header, by name in one with."""
    Path("a.tsv").write_bytes(b"".join(b"7\t" + line + b"\n" for line in tsv(pairs()).splitlines()))
    numbers = ("--source-column", "2", "--target-column", "3")
    assert "nothing to complain" in call("check-data", "a.tsv", *ENDE, *numbers).out
    Path("b.csv").write_bytes(b"text,German\n" + tsv(pairs()).replace(b"\t", b","))
    names = ("--source-column", "text", "--target-column", "German")
    assert "nothing to complain" in call("check-data", "b.csv", *ENDE, *names).out
    assert "[missing-column]" in call("check-data", "b.csv", *ENDE).out


def test_a_truncated_gzip_file(call: Call) -> None:
    """Named like any other damage: no traceback."""
    Path("a.tsv.gz").write_bytes(gzip.compress(tsv(pairs()))[:-10])
    code, out, err = call("check-data", "a.tsv.gz")
    assert (code, err) == (1, "")
    assert "[damaged-gzip]" in out


def test_fetch_lists_and_copies(call: Call, tmp_path: Path) -> None:
    """Without a name the list; with one the licence, the home and what is missing."""
    code, out, _ = call("fetch")
    assert code == 0
    assert "multi30k" in out
    assert "not here" in out
    write_lines(tmp_path / "from" / "train.en", ["not the corpus"])
    answer = call("fetch", "multi30k", "--from", "from", "--root", "own")
    refused(answer, 1, "is not the multi30k/train.en of the recipes")
    assert "licence: " in answer.out
    refused(call("fetch", "enko"), 2, "name their folder: --from.")
    refused(call("fetch", "multi40k"), 2, "did you mean 'multi30k'")


# --- Images -----------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes, one copy under another label, one file cut off."""
    write_halves(tmp_path)
    folder = tmp_path / "halves"
    first, second, *_ = sorted((folder / "left").iterdir())
    shutil.copy(first, folder / "right" / "copy.png")
    second.write_bytes(second.read_bytes()[:40])
    return folder


def test_a_folder_of_images(call: Call, photos: Path) -> None:
    """Names and remedies; exit code 1 for what training would stumble over."""
    code, out, err = call("check-data", photos)
    assert (code, err) == (1, "")
    assert out.startswith(f"{photos}: 41 images, 2 classes, 2 errors, 2 warnings")
    words = " ".join(out.split())
    for part in (
        "[unreadable]",
        "[conflicting-labels]",
        "[duplicate]",
        "[tiny]",
        "copy.png (right) =",
    ):
        assert part in words


def test_images_as_json(call: Call, photos: Path) -> None:
    """The form of text, with images for pairs and examples for lines."""
    code, out, _ = call("check-data", photos, "--test", photos, "--json")
    (found,) = json.loads(out)["corpora"]
    assert (code, found["images"], found["classes"], found["errors"]) == (1, 41, 2, 3)
    kinds = {finding["kind"]: finding for finding in found["findings"]}
    assert kinds["test-overlap"]["count"] == 40
    assert kinds["unreadable"]["examples"][0].startswith(str(photos))


def test_a_table_of_images(call: Call, photos: Path) -> None:
    """A table could be text: --images says what it is."""
    rows = [f"{path.parent.name}/{path.name},{path.parent.name}" for path in photos.rglob("*.png")]
    (photos / "list.csv").write_text("\n".join(["file,kind", *rows]) + "\n")
    options = ("--images", "--image", "file", "--label", "kind")
    code, out, _ = call("check-data", photos / "list.csv", *options)
    assert code == 1
    assert "41 images, 2 classes" in out
    assert call("check-data", photos, "--source", "en").code == 2


def test_a_recipe_of_images(call: Call, photos: Path, tmp_path: Path) -> None:
    """Training against what is held out of it."""
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    code, out, _ = call("check-data", recipe, "--json")
    train, valid = json.loads(out)["corpora"]
    assert code == 1
    assert (train["images"], valid["images"]) == (33, 8)
    assert valid["name"] == "8 held out of halves"


def test_a_recipe_without_labels(call: Call, photos: Path, tmp_path: Path) -> None:
    """Images are looked at; there are no classes to speak of."""
    text = CLASSIFY.replace('"classify"', '"reconstruct"')
    recipe = write_recipe(tmp_path / "masked.toml", text, tmp_path)
    code, out, err = call("check-data", recipe)
    assert (code, err) == (1, "")
    assert out.startswith("halves: 33 images, 2 errors, ")
    assert "[unreadable]" in out
    assert "[conflicting-labels]" not in out


def test_a_recipe_of_text_is_none_of_images(call: Call, tmp_path: Path) -> None:
    """Whatever --images says."""
    recipe = write_recipe(tmp_path / "text.toml", TRANSLATE, tmp_path)
    refused(call("check-data", recipe, "--images"), 2, "does not train on images")


def test_an_array_that_is_no_image(call: Call, photos: Path) -> None:
    """A line of numbers, in a folder and by itself."""
    np.save(photos / "left" / "line.npy", np.zeros(24, dtype=np.uint8))
    code, out, err = call("check-data", photos)
    assert (code, err) == (1, "")
    assert "line.npy (its shape is (24,), not (height, width, channel))" in " ".join(out.split())
    alone = call("check-data", photos / "left" / "line.npy")
    refused(alone, 2, "line.npy' is one image: name a folder or a table")


def test_several_labels_of_which_there_are_none(call: Call, photos: Path) -> None:
    """Said before anything is looked at."""
    rows = [f"{path.parent.name}/{path.name}," for path in photos.rglob("*.png")]
    (photos / "list.csv").write_text("\n".join(["image,label", *rows]) + "\n")
    answer = call("check-data", photos / "list.csv", "--images", "--multi-label")
    refused(answer, 1, "None of 41 images has a label")


def test_parquet_of_paths(call: Call, photos: Path) -> None:
    """Relative to the table; damage is named by file and row."""
    names = [f"{path.parent.name}/{path.name}" for path in sorted(photos.rglob("*.png"))]
    labels = [name.partition("/")[0] for name in names]
    pq.write_table(pa.table({"image": names, "label": labels}), photos / "list.parquet")
    code, out, err = call("check-data", photos / "list.parquet", "--images", "--json")
    assert (code, err) == (1, "")
    (found,) = json.loads(out)["corpora"]
    kinds = {finding["kind"]: finding["count"] for finding in found["findings"]}
    assert (found["images"], kinds["unreadable"], kinds["duplicate"]) == (41, 1, 1)


def test_advice(call: Call, tmp_path: Path) -> None:
    """A recipe, a range, the rows it rests on, and the command."""
    code, out, err = call("advise", "digits")
    assert (code, err) == (0, "")
    assert "advice: digits (transformer); expect" in out
    assert "manyheads train digits data.train=digits" in out
    write_halves(tmp_path)
    found = json.loads(call("advise", "halves", "--json").out)
    assert found["expected"] is None
    assert found["facts"]["images"] == 40
    assert call("advise", "nothing").code == 2
    rows = [f"halves/left/{number:03d}.png,a;b" for number in range(0, 40, 2)]
    (tmp_path / "list.csv").write_text("\n".join(["image,label", *rows]) + "\n")
    several = call("advise", "list.csv", "--multi-label")
    assert (several.code, several.err) == (0, "")
    assert "Several labels an image" in several.out


# --- Images with texts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--captions",), "Name columns with --image, and with --text or --caption and"),
        (("--text", "en"), "Name columns with --text en=name,keywords"),
        (("--text", "en=none"), "has no none. It has image, name."),
        (("--images", "--label", "none"), "Name them with --image and --label."),
    ],
)
def test_columns_that_are_not_there(
    call: Call, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    """Messages name options, not keys of a recipe; and the options exist."""
    squares.write_files(tmp_path / "images", 1)
    (tmp_path / "a.csv").write_text("image,name\nimages/0.png,red left\n")
    code, out, err = call("check-data", tmp_path / "a.csv", *words)
    assert code in (1, 2)
    assert out == ""
    assert told in err
    assert "data." not in err
    right = call("check-data", tmp_path / "a.csv", "--text", "en=name")
    assert right == (
        0,
        f"{tmp_path / 'a.csv'}: 1 images, 1 texts in en, nothing to complain of\n",
        "",
    )


def test_a_recipe_that_draws_its_images(call: Call) -> None:
    code, _, err = call("check-data", "read-ko")
    assert code == 2
    assert "draws its images from texts" in err
