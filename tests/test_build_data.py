"""Data sets from public sources, `python -m scripts.data`; their sources here are stand-ins."""

import base64
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from manyheads.data.text.public_corpora import public_corpora
from scripts.data import __main__ as command
from scripts.data import cifar10, emoji, enko, everyday, icons, rows, tatoeba, words
from scripts.data.rows import in_order, key, listed, write_list
from scripts.data.sources import SourceError, Sources

DATA = os.environ.get("MANYHEADS_DATA")


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    (tmp_path / "sources").mkdir()
    return Sources(tmp_path / "sources")


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for lists of rows, in place of the real one."""
    for module in (rows, emoji, icons):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "lists")
    (tmp_path / "lists").mkdir()
    return tmp_path / "lists"


def commit(folder: Path, **files: str | bytes) -> str:
    """Make a repository of files (`__` is a slash); return its commit."""
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for step in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *step], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def package(sources: Sources, name: str, **files: str) -> str:
    """Put a package of npm where it would be downloaded to; return its hash."""
    path = sources.folder / name
    with tarfile.open(path, "w:gz") as archive:
        for file, content in files.items():
            info = tarfile.TarInfo(f"package/{file.replace('__', '/')}")
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def export(sources: Sources, name: str, *pairs: tuple[str, str]) -> None:
    """Put an export of manythings.org where it would be downloaded to."""
    with zipfile.ZipFile(sources.folder / f"{name}-eng.zip", "w") as archive:
        lines = [f"{english}\t{other}\tCC-BY 2.0 (France)" for english, other in pairs]
        archive.writestr(f"{name}.txt", "\n".join(lines) + "\n")


# --- Lists and sources --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["enko", "cifar10"])
def test_the_lists_have_as_many_rows_as_the_sets(name: str) -> None:
    """Each row once; the files' lines, or CIFAR-10's published numbers."""
    numbers = {"cifar10": {"test": 10_000, "train": 50_000}}.get(
        name, {"train": 29_269, "val": 1000, "test": 1000, "more": 14_961}
    )
    for split, number in numbers.items():
        keys = listed(f"{name}-{split}")
        assert len(keys) == len({*keys}) == number
    together = [each for split in numbers for each in listed(f"{name}-{split}")]
    assert len({*together}) == len(together)  # no row is in two splits


def test_rows_in_the_order_of_their_list(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_list("toy", [key("b"), key("a"), key("c")])
    assert in_order("toy", {key(name): name for name in "adb"}) == ["b", "a"]
    assert "lack 1 of 3 rows" in capsys.readouterr().out


def test_a_repository_at_its_commit(sources: Sources, tmp_path: Path) -> None:
    """Only the folders that are asked for; fetched once."""
    theirs = tmp_path / "theirs"
    first = commit(theirs, png__a="image", docs__b="text")
    found = sources.repository("toy", theirs.as_uri(), first, "png")
    assert (found / "png" / "a").read_text() == "image"
    assert not (found / "docs").exists()
    theirs.rename(tmp_path / "gone")
    assert sources.repository("toy", theirs.as_uri(), first, "png") == found
    with pytest.raises(SourceError, match=r"git fetch .* failed"):
        sources.repository("toy", theirs.as_uri(), "0" * 40, "png")


def test_a_package_is_checked_by_its_hash(sources: Sources) -> None:
    integrity = package(sources, "toy-1.0.tgz", a="text")
    assert sources.package("@user/toy", "1.0", integrity) == {"package/a": b"text"}
    package(sources, "toy-1.0.tgz", a="texts")
    with pytest.raises(SourceError, match=r"expected sha512-"):
        sources.package("@user/toy", "1.0", integrity)


def test_a_file_is_downloaded_once(
    sources: Sources, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its hash is checked where it is known, and printed where nobody has recorded it."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.zip").write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path / "served"))  # type: ignore[arg-type]

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/a.zip"
    try:
        assert sources.file("a.zip", url).read_bytes() == b"content"
    finally:
        server.shutdown()
        server.server_close()
    assert f"sha256 {digest}" in capsys.readouterr().out
    assert sources.file("a.zip", url, digest).exists()  # nobody serves it now
    with pytest.raises(SourceError, match="bring it again"):
        sources.file("a.zip", url, "0" * 64)
    with pytest.raises(SourceError, match=r"cannot be downloaded: .*Bring the file yourself"):
        sources.file("b.zip", url)


# --- The sets -----------------------------------------------------------------------------------


def test_emoji(
    sources: Sources, lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images with names in all languages; tones of skin belong to their base."""
    wave, tone = "\N{WAVING HAND SIGN}", "\N{WAVING HAND SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-3}"
    images = {f"png__72__emoji_u{code}.png": f"png of {code}" for code in ("1f44b", "1f44b_1f3fc")}
    images["png__72__emoji_u1f9ff.png"] = "without a name"
    found = commit(tmp_path / "noto", **images)
    monkeypatch.setattr(emoji, "NOTO", (tmp_path / "noto").as_uri())
    monkeypatch.setattr(emoji, "COMMIT", found)
    for name, (folder, part) in emoji.CLDR.items():
        sign, words = (tone, "tones") if "derived" in name else (wave, "waving")
        about = {sign: {"tts": [f"hand, {words}"], "default": ["hand", words]}}
        files = {
            f"{folder}__{language}__annotations.json": json.dumps({part: {"annotations": about}})
            for language in emoji.LANGUAGES
        }
        integrity = package(sources, f"{name}-{emoji.VERSION}.tgz", **files)
        monkeypatch.setitem(emoji.INTEGRITY, name, integrity)
    (lists / "emoji.tsv").write_text("1f44b_1f3fc\ttest_tone\n")
    (path,) = emoji.build(sources, tmp_path / "data")
    made = pq.read_table(path).to_pylist()
    assert [(row["codepoints"], row["base"], row["split"]) for row in made] == [
        ("1f44b", "1f44b", "train"),
        ("1f44b_1f3fc", "1f44b", "test_tone"),
    ]
    assert made[0]["image"] == b"png of 1f44b"
    assert made[1]["name_ko"] == "hand, tones"
    assert made[1]["keywords_ja"] == ["hand", "tones"]


SQUARE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="M0 0h12v24H0z"/></svg>'
)


def test_icons(
    sources: Sources, lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sets, with their search words and splits; how they are drawn is another test."""
    monkeypatch.setattr(icons, "draw", lambda svg: f"drawn {svg}".encode())
    meta = [{"name": "ab-testing", "aliases": ["A/B"], "tags": ["Developer / Languages"]}]
    files = {"meta.json": json.dumps(meta), "svg__ab-testing.svg": "one"}
    monkeypatch.setattr(icons, "INTEGRITY", package(sources, f"svg-{icons.MDI}.tgz", **files))
    theirs = {
        "icons__x.svg": "two",
        "icons__x.json": json.dumps({"tags": ["close", "<-"], "aliases": [{"name": "shut-it"}]}),
        "icons__x-line.svg": "three",
        "icons__x-line.json": json.dumps({"tags": ["mean"]}),
    }
    found = commit(tmp_path / "lucide", **theirs)
    monkeypatch.setattr(icons, "LUCIDE", (tmp_path / "lucide").as_uri())
    monkeypatch.setattr(icons, "COMMIT", found)
    (lists / "icons.tsv").write_text("lucide\tx\ttest\n")
    (path,) = icons.build(sources, tmp_path / "data")
    made = [tuple(row.values()) for row in pq.read_table(path).to_pylist()]
    words = ["a b", "ab testing", "developer   languages"]
    assert made == [
        ("mdi", "ab-testing", b"drawn one", words, "train"),
        ("lucide", "x-line", b"drawn three", ["mean", "x line"], "train"),
        ("lucide", "x", b"drawn two", ["close", "shut it", "x"], "test"),
    ]


def test_an_icon_is_drawn_black_on_white() -> None:
    """Its left half."""
    image = Image.open(io.BytesIO(icons.draw(SQUARE)))
    assert (image.mode, image.size) == ("L", (48, 48))
    pixels = np.asarray(image)
    assert (pixels[:, :24] == 0).all()
    assert (pixels[:, 24:] == 255).all()


def test_cifar10(
    sources: Sources, lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same pixels and labels, in the order of the lists and in as many files."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    labels = ["cat", "ship", "ship", "frog", "deer", "cat"]
    for split, numbers in (("test", [0, 1]), ("train", [2, 3, 4, 5])):
        theirs = []
        for number in numbers:
            out = io.BytesIO()
            Image.fromarray(pixels[number]).save(out, "PNG")
            label = cifar10.CLASSES.index(labels[number])
            theirs.append({"img": {"bytes": out.getvalue(), "path": None}, "label": label})
        name = f"cifar10-{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(theirs), sources.folder / name)
        order = numbers[::-1]
        keys = [key(labels[number], pixels[number].tobytes()) for number in order]
        write_list(f"cifar10-{split}", keys)
    monkeypatch.setattr(cifar10, "SHARDS", {"test": 1, "train": 2})
    paths = list(cifar10.build(sources, tmp_path))
    assert [path.name for path in paths] == [
        "test-0-of-1.parquet",
        "train-0-of-2.parquet",
        "train-1-of-2.parquet",
    ]
    made = [row for path in paths for row in pq.read_table(path).to_pylist()]
    order = [1, 0, 5, 4, 3, 2]
    assert [row["label"] for row in made] == [labels[number] for number in order]
    for row, number in zip(made, order, strict=True):
        image = Image.open(io.BytesIO(row["image"]))
        assert image.format == "WEBP"
        assert (np.asarray(image) == pixels[number]).all()


def test_tatoeba(sources: Sources, lists: Path, tmp_path: Path) -> None:
    """No training pair is joined to validation and test, not even by a chain of translations."""
    german = [
        ("Hi.", "Hallo!"),
        ("Hi.", "Grüß dich!"),
        ("Hello!", "Hallo."),  # joined to "Hi." by its translation
        ("Good day.", "Grüß dich."),  # by the other one
        ("Good day.", "Guten Tag!"),
        ("G'day.", "Guten Tag."),  # by a chain of three
        ("Run!", "Lauf!"),
        ("Stop!", "Halt!"),
        ("Go on.", "Weiter."),
    ]
    export(sources, "deu", *german, ("Go on.", "Weiter."))
    export(sources, "fra", ("Go.", "Va !"), ("Hi.", "Salut !"))
    write_list("tatoeba-val-de", [key("Hi.")])
    write_list("tatoeba-test-de", [key("Stop!"), key("Gone since.")])
    for split, text in (("val", "Go."), ("test", "Hi.")):
        write_list(f"tatoeba-{split}-fr", [key(text)])
    made = {path.name: path.read_text("utf-8") for path in tatoeba.build(sources, tmp_path)}
    assert made["val.en-de.tsv"] == "Hi.\tHallo!\n"
    assert made["val.en-de.refs.tsv"] == "Hi.\tHallo!\tGrüß dich!\n"
    assert made["test.en-de.tsv"] == "Stop!\tHalt!\n"
    assert sorted(made["train.en-de.tsv"].splitlines()) == ["Go on.\tWeiter.", "Run!\tLauf!"]
    assert made["train.en-fr.tsv"] == ""


MESSAGES = """
#: library/os.rst:12
msgid "Return the :class:`~os.stat_result` of *path*."
msgstr ""
"*path*\\\\의 "
":class:`~os.stat_result`\\\\를 반환합니다."

#: library/os.rst:13
#, fuzzy
msgid "Removed."
msgstr "삭제?"

msgid "Faster. (Contributed by A. B. in :issue:`12`.)"
msgstr "빨라졌습니다. (A. B.가 :issue:`12`\\\\에서 기여했습니다.)"

msgid "Call ``fun(*args, **kwds)``."
msgstr "``fun(*args, **kwds)``\\\\를 호출합니다."

msgid "Not translated."
msgstr ""
"""


def test_enko(
    sources: Sources, lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages without their markup, Tatoeba, the STS benchmark, Korean alone, two test sets."""
    documentation = [
        ("Return the stat_result of path.", "path의 stat_result를 반환합니다."),
        ("Faster.", "빨라졌습니다."),
        ("Call fun(args, *kwds).", "fun(args, *kwds)를 호출합니다."),
    ]
    repositories = {
        "DOCS": {"library__os.po": MESSAGES},
        "TEXTBOOK": {
            "korean-english-jhe__jhe-koen-dev.en": "A  cow. \n",
            "korean-english-jhe__jhe-koen-dev.ko": "소.\n",
        },
        "NEWS": {
            "NTREX-128__newstest2019-src.eng.txt": "News\r\n",
            "NTREX-128__newstest2019-ref.kor.txt": "소식\r\n",
        },
    }
    columns = "genre\tfile\tyear\tnumber\tscore"
    sts = "a\tMSRvid\t2012test\t0001\t5.0"
    repositories["STS"] = {f"stsbenchmark__sts-{split}.csv": "" for split in ("dev", "test")}
    # Greek letters in two spellings, and a last field that a row of dev may have
    repositories["STS"]["stsbenchmark__sts-train.csv"] = f"{sts}\tA \u1f7b.\tA plane.\tsource\n"
    korean = f"{columns}\tsentence1\tsentence2\n"
    repositories["KORNLU"] = {f"KorSTS__sts-{split}.tsv": korean for split in ("dev", "test")}
    repositories["KORNLU"]["KorSTS__sts-train.tsv"] = f"{korean}{sts}\t에이.\t비행기.\n"
    repositories["KORNLU"] |= {
        f"KorNLI__xnli.{split}.ko.tsv": "sentence1\tsentence2\tgold_label\n하나.\t둘.\tneutral\n"
        for split in ("dev", "test")
    }
    repositories["CHAT"] = {"ChatbotData.csv": 'Q,A,label\n"네, 뭐",응,0\n'}
    for name, files in repositories.items():
        found = commit(tmp_path / name, **files)
        monkeypatch.setattr(enko, name, (tmp_path / name).as_uri())
        monkeypatch.setattr(enko, f"{name}_COMMIT", found)
    export(sources, "kor", ("Hi.", "안녕."))
    write_list("enko-train", [key(*pair, "python-docs") for pair in documentation])
    write_list("enko-val", [key("Hi.", "안녕.", "tatoeba")])
    write_list("enko-test", [])
    more = [("A \u03cd.", "에이.", "sts-machine"), ("A plane.", "비행기.", "sts-machine")]
    write_list("enko-more", [key(*row) for row in more])
    write_list("enko-mono", [key("둘."), key("네, 뭐")])
    made = {path.name: path.read_text("utf-8") for path in enko.build(sources, tmp_path)}
    assert made == {
        "train.tsv": "".join(
            f"{english}\t{korean}\tpython-docs\n" for english, korean in documentation
        ),
        "val.tsv": "Hi.\t안녕.\ttatoeba\n",
        "more.tsv": "".join("\t".join(row) + "\n" for row in more),
        "mono.ko": "둘.\n네, 뭐\n",
        "test.tsv": "",
        "jhe_dev.tsv": "A cow.\t소.\n",
        "ntrex.tsv": "News\t소식\n",
    }


def test_words(sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short meanings without articles and brackets, once each; names of emoji to train on."""
    tail = "joe\t\\N\t\\N\tB\t1\t\\N"
    rows = [
        f"1\t당근\t\\N\tA carrot\t1\t{tail}",
        f"2\t가다\t\\N\tTo go, to leave (for good)\t2\t{tail}",
        f"3\t일본\t\\N\tJapan\t7\t{tail}",
        f"4\t꼼꼼하다\t\\N\tvery careful in a very detailed manner\t4\t{tail}",
        f"5\t베이징(북경)\t\\N\tBeijing\t7\t{tail}",
        f"6\t당근\t\\N\tthe carrot\t1\t{tail}",
        "COPY m_korean FROM stdin;",
    ]
    found = commit(tmp_path / "kengdic", **{"ezcorean_6000.sql": "\ufeff" + "\n".join(rows)})
    monkeypatch.setattr(words, "DICTIONARY", (tmp_path / "kengdic").as_uri())
    monkeypatch.setattr(words, "DICTIONARY_COMMIT", found)
    with pytest.raises(SourceError, match=r"noto72\.parquet is not there: .* emoji` builds it"):
        list(words.build(sources, tmp_path))
    (tmp_path / "emoji").mkdir()
    names = ["pear", "eye", "pear: dark skin tone", "family: boy"]
    table = {"name_en": names, "name_ko": ["배", "눈", "배", "가족"]}
    splits = {"split": ["train", "test_unseen", "train", "train"]}
    pq.write_table(pa.table(table | splits), tmp_path / words.EMOJI)
    path, phrases = words.build(sources, tmp_path)
    assert phrases.name == "phrases.en-ko.tsv"
    assert "Thank you.\t감사합니다.\n" in phrases.read_text(encoding="utf-8")
    assert path.read_text("utf-8").splitlines() == [
        "carrot\t당근",
        "go\t가다",
        "leave\t가다",
        "Japan\t일본",
        "pear\t배",
    ]


# --- The command --------------------------------------------------------------------------------


def test_what_is_built_is_compared_with_the_register(
    sources: Sources,
    lists: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 1, where it differs or a source cannot be had."""
    for name, pair in (("deu", ("Run!", "Lauf!")), ("fra", ("Run!", "Cours !"))):
        export(sources, name, pair)
    for name in ("val-de", "test-de", "val-fr", "test-fr"):
        write_list(f"tatoeba-{name}", [])
    places = ["--root", str(tmp_path / "data"), "--sources", str(sources.folder)]
    monkeypatch.setattr(sys, "argv", ["scripts.data", "tatoeba", *places])
    assert command.main() == 1
    assert "train.en-de.tsv: sha256 " in (out := capsys.readouterr().out)
    assert out.count("NOT as registered") == 10
    digests = {
        file.path: hashlib.sha256((tmp_path / "data" / file.path).read_bytes()).hexdigest()
        for file in public_corpora()["tatoeba"].files
    }
    same = [f._replace(sha256=digests[f.path]) for f in public_corpora()["tatoeba"].files]
    told = {"tatoeba": public_corpora()["tatoeba"]._replace(files=tuple(same))}
    monkeypatch.setattr(command, "public_corpora", lambda: told)
    assert command.main() == 0
    (sources.folder / "deu-eng.zip").write_bytes(gzip.compress(b"no zip"))
    assert command.main() == 1
    assert "deu-eng.zip is no export" in capsys.readouterr().err


def test_every_set_that_is_not_published_has_a_script_or_says_that_it_cannot_be_had() -> None:
    for name, corpus in public_corpora().items():
        built = f"`python -m scripts.data {name}`" in (corpus.how or "")
        assert built is (name in command.NAMES)
        assert built or corpus.url or "cannot be had" in str(corpus.how) or not corpus.files


@pytest.mark.full
@pytest.mark.skipif(DATA is None, reason="needs the public data sets: set MANYHEADS_DATA")
def test_the_lists_are_those_of_the_sets() -> None:
    """Row by row: files that are built of the lists have these rows in this order."""
    assert DATA is not None
    mono = (Path(DATA) / "enko" / "mono.ko").read_text("utf-8").removesuffix("\n")
    assert listed("enko-mono") == [key(line) for line in mono.split("\n")]
    for split in ("train", "val", "test", "more"):
        lines = (Path(DATA) / "enko" / f"{split}.tsv").read_text("utf-8").removesuffix("\n")
        assert listed(f"enko-{split}") == [key(line) for line in lines.split("\n")]
        if split in ("val", "test"):
            for language in ("de", "fr"):
                path = Path(DATA) / "tatoeba" / f"{split}.en-{language}.tsv"
                lines = path.read_text("utf-8").removesuffix("\n")
                found = [key(line.partition("\t")[0]) for line in lines.split("\n")]
                assert listed(f"tatoeba-{split}-{language}") == found
    for split, shards in cifar10.SHARDS.items():
        found = []
        for shard in range(shards):
            path = Path(DATA) / "cifar10" / f"{split}-{shard}-of-{shards}.parquet"
            for row in pq.read_table(path).to_pylist():
                pixels = Image.open(io.BytesIO(row["image"])).convert("RGB").tobytes()
                found.append(key(row["label"], pixels))
        assert listed(f"cifar10-{split}") == found


def test_everyday(sources: Sources, tmp_path: Path) -> None:
    """A file for each language, of pairs in its letters."""
    for path in everyday.build(sources, tmp_path):
        pairs = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        assert len(pairs) > 10_000
        assert all(len(pair) == 2 for pair in pairs)
        letters = "[가-힣]" if path.stem == "en-ko" else "[A-Za-z]"
        assert all(re.search("[A-Za-z]", en) and re.search(letters, other) for en, other in pairs)
