"""English and Korean: Python's documentation, Tatoeba, and for testing a textbook and news.

Besides, more.tsv, newer sentences of Tatoeba and those of the STS benchmark with KorSTS's Korean
(Ham et al. 2020), of which the machine's are uneven, and mono.ko, Korean without English: a
chatbot's questions and answers, and the dev and test sentences of KorNLI, which are translations.

The documentation is in the translation's files for gettext. Its markup is taken away; how, was not
the same for all lines, so that several readings of each are tried (`readings`).
"""

import ast
import csv
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from unicodedata import normalize

from scripts.data.rows import in_order, key, write_table
from scripts.data.sources import SourceError, Sources
from scripts.data.tatoeba import exported

DOCS = "https://github.com/python/python-docs-ko"
DOCS_COMMIT = "d0c58403de225366b23d0cafd8b86508186c8c8a"  # branch 3.13, May 2025
TEXTBOOK = "https://github.com/jungyeul/korean-parallel-corpora"
TEXTBOOK_COMMIT = "a1fb53dc5216f3a2d07d973456d8921ed23c88c6"
NEWS = "https://github.com/MicrosoftTranslator/NTREX"
NEWS_COMMIT = "8561f6a622db9edad1217683e5c83daefd8bb2bf"
KORNLU = "https://github.com/kakaobrain/KorNLUDatasets"
KORNLU_COMMIT = "0df0fe7d496eb61b092e022e238c2230b29f1cbc"
STS = "https://github.com/aivilmo/textual-similarity"  # has the STS benchmark's files
STS_COMMIT = "3fe0911a2e267b1cd7b2602c095c402ebadf4271"
CHAT = "https://github.com/songys/Chatbot_data"
CHAT_COMMIT = "4cf20d13fc46f5037fd1c531cd566e2dd9f72974"
STS_SPLITS = {"train": "sts-machine", "dev": "sts-human", "test": "sts-human"}  # who translated
CALLS = ("func", "meth", "cfunc")  # roles of what is called
Row = tuple[str, str, str]


def build(sources: Sources, root: Path) -> Iterator[Path]:
    """Write enko/{train,val,test,more,jhe_dev,ntrex}.tsv, and mono.ko."""
    out = root / "enko"
    folder = sources.repository("python-docs-ko", DOCS, DOCS_COMMIT)
    rows: dict[bytes, Row] = {}
    for path in sorted(folder.rglob("*.po")):
        for english, korean in messages(path.read_text("utf-8")):
            for pair in product(readings(english), readings(korean)):
                rows[key(*pair, "python-docs")] = (*pair, "python-docs")
    for english, korean in exported(sources, "kor"):
        rows[key(english, korean, "tatoeba")] = (english, korean, "tatoeba")
    kornlu = sources.repository("kornlu", KORNLU, KORNLU_COMMIT, "KorSTS", "KorNLI")
    similar = sources.repository("sts", STS, STS_COMMIT, "stsbenchmark") / "stsbenchmark"
    for split, origin in STS_SPLITS.items():
        for pair in sts_pairs(similar / f"sts-{split}.csv", kornlu / "KorSTS" / f"sts-{split}.tsv"):
            rows[key(*pair, origin)] = (*pair, origin)
    for split in ("train", "val", "test", "more"):
        yield write_table(out / f"{split}.tsv", in_order(f"enko-{split}", rows))
    lines = chat_lines(sources.repository("chatbot", CHAT, CHAT_COMMIT) / "ChatbotData.csv")
    for split in ("dev", "test"):
        lines += nli_lines(kornlu / "KorNLI" / f"xnli.{split}.ko.tsv")
    yield write_table(
        out / "mono.ko", in_order("enko-mono", {key(line): (line,) for line in lines})
    )
    place = sources.repository("jhe", TEXTBOOK, TEXTBOOK_COMMIT, "korean-english-jhe")
    stem = place / "korean-english-jhe" / "jhe-koen-dev"
    yield write_table(out / "jhe_dev.tsv", aligned(Path(f"{stem}.en"), Path(f"{stem}.ko")))
    place = sources.repository("ntrex", NEWS, NEWS_COMMIT, "NTREX-128") / "NTREX-128"
    sides = (place / "newstest2019-src.eng.txt", place / "newstest2019-ref.kor.txt")
    yield write_table(out / "ntrex.tsv", aligned(*sides))


def messages(text: str) -> Iterator[tuple[str, str]]:
    """Read the translated messages of a .po file; those marked as fuzzy are none."""
    for block in re.split(r"\n\s*\n", text):
        if re.search(r"^#,.*fuzzy", block, re.MULTILINE):
            continue
        message, part = {"msgid": "", "msgstr": ""}, ""
        for line in block.splitlines():
            if found := re.match(r'(msgid|msgstr)\s+(".*")', line):
                part = found[1]
                message[part] += ast.literal_eval(found[2])
            elif part and line.startswith('"'):
                message[part] += ast.literal_eval(line)
        if message["msgid"] and message["msgstr"]:
            yield message["msgid"], message["msgstr"]


def readings(text: str) -> list[str]:
    r"""Take reStructuredText's markup away; where it is not certain what is markup, several ways.

    Examples:
        >>> readings("See :func:`~os.path.join` of :issue:`12`,\n``a * b`` and *more*.")
        ['See join() of #12, a * b and more.']
    """
    text = re.sub(r":([a-z0-9:+.-]+):`([^`]*)`", lambda found: _role(found[1], found[2]), text)
    text = re.sub(r"(?<!`)`([^`<]+?)\s*<[^`>]*>`_{0,2}", r"\1", text)
    text = re.sub(r"``(.*?)``", r"\1", text)
    text = re.sub(r"`([^`]*)`_{0,2}", r"\1", text)
    text = re.sub(r"\|(\w+)\|", r"\1", text)
    text = f"{text[:-2]}:" if text.endswith("::") else text
    bare = re.sub(r"\\\s*", "", text)
    bold = re.sub(r"\*\*([^*]+)\*\*", r"\1", bare)
    stars = r"(?<![A-Za-z0-9_])\*([^*]+)\*(?![A-Za-z0-9_])", r"\*([^*\s]|[^*\s][^*]*[^*\s])\*"
    plain = [re.sub(each, r"\1", where) for where in (bold, bare) for each in stars]
    early = re.sub(r"\\\s*", "", re.sub(r"\*([^*\s][^*]*)\*", r"\1", text))
    fewer = re.sub(r"(?<!\w)\*(\w)", r"\1", plain[-1])
    found = [
        short for each in (*plain, fewer, bold, bare, early) for short in (each, uncredited(each))
    ]
    return list(dict.fromkeys(" ".join(each.split()) for each in found))


def _role(name: str, text: str) -> str:
    if titled := re.fullmatch(r"(.+?)\s*<[^>]*>", text, re.DOTALL):
        text = titled[1]
    elif name == "issue":
        return f"#{text}"
    elif text.startswith(("~", "!~")):
        text = text.rpartition(".")[2]
    if name == "pep":
        return f"PEP {text}"
    text = text.lstrip("!~")
    calls = name.rpartition(":")[2] in CALLS and not text.endswith(")")
    return f"{text}()" if calls else text


def uncredited(text: str) -> str:
    """Take away the brackets that say who contributed something.

    Examples:
        >>> uncredited("It is faster. (Contributed by A. B. (C) in #1.)")
        'It is faster. '
    """
    out, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        if sign == "(":
            if not depth:
                out.append(text[begin:at])
                begin = at
            depth += 1
        elif sign == ")" and depth:
            depth -= 1
            if not depth:
                inner = text[begin : at + 1]
                begin = at + 1
                out.append("" if re.search(r"[Cc]ontributed|기여|^\(Patch by", inner) else inner)
    return "".join((*out, text[begin:]))


def aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Read two files, line by line."""
    sides = (path.read_text("utf-8").split("\n") for path in (source, target))
    for english, korean in zip(*sides, strict=True):
        if english.strip():
            yield " ".join(english.split()), " ".join(korean.split())


def sts_pairs(english: Path, korean: Path) -> Iterator[tuple[str, str]]:
    """Read both sentences of each row of the STS benchmark with KorSTS's translation.

    Raises:
        SourceError: a row is in one of them only.
    """
    sides = (path.read_text("utf-8").split("\n") for path in (english, korean))
    rows = [[line.split("\t") for line in lines if line] for lines in sides]
    known = {tuple(row[1:4]): row for row in rows[0]}  # file, year, number
    for row in rows[1][1:]:
        name = tuple(row[1:4])
        if name not in known:
            raise SourceError(f"{english} has no row {name}, which {korean} has")
        for one, other in zip(known[name][5:7], row[5:7], strict=True):
            yield normalize("NFC", one.strip()), normalize("NFC", other.strip())


def chat_lines(path: Path) -> list[str]:
    """Read the questions and answers of Chatbot_data."""
    with path.open(encoding="utf-8", newline="") as file:
        return [text.strip() for row in list(csv.reader(file))[1:] for text in row[:2]]


def nli_lines(path: Path) -> list[str]:
    """Read both sentences of each row of KorNLI."""
    rows = path.read_text("utf-8").split("\n")[1:]
    return [text.strip() for row in rows for text in row.split("\t")[:2]]
