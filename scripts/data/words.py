"""English and Korean words: 6,000 common ones of the dictionary kengdic, and names of emoji.

A sentence of everyday words that no pair has is spelled from pieces; a dictionary has the words.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from scripts.data.phrases import drawn, written
from scripts.data.rows import write_table
from scripts.data.sources import SourceError, Sources

DICTIONARY = "https://github.com/garfieldnate/kengdic"
DICTIONARY_COMMIT = "4b98ae98669ada39559906bf4ca2811c59245746"  # has the common words
EMOJI = "emoji/noto72.parquet"
LONGEST = 4  # words of an English side
NAME = "7"  # part of speech: of a name; a description of one has words without a capital
CAPITAL = re.compile(
    r"\b(?:i|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|april|june|july|august"
    r"|(?:sept|nov|dec)ember|october|christmas|korean?|seoul|chin(?:a|ese)|japan(?:ese)?|german"
    r"|english|french|american?|russian?|europe(?:an)?|western)\b"
)
SHORT = {"sb": "somebody", "sth": "something", "swh": "somewhere"}

Pair = tuple[str, str]


def build(sources: Sources, root: Path) -> Iterator[Path]:
    """Write words/en-ko.tsv, for which the emoji must be there, and words/phrases.en-ko.tsv."""
    if not (root / EMOJI).exists():
        raise SourceError(f"{root / EMOJI} is not there: `python -m scripts.data emoji` builds it")
    folder = sources.repository("kengdic", DICTIONARY, DICTIONARY_COMMIT)
    dump = (folder / "ezcorean_6000.sql").read_text("utf-8-sig")
    pairs = [*dictionary(dump), *emoji_names(root / EMOJI)]
    yield write_table(root / "words" / "en-ko.tsv", dict.fromkeys(pairs))
    yield write_table(root / "words" / "phrases.en-ko.tsv", dict.fromkeys([*written(), *drawn()]))


def dictionary(dump: str) -> Iterator[Pair]:
    r"""Read the short meanings of words in the dump of a database.

    Examples:
        >>> head, tail = "\\N\t\\N\tB\t1\t\\N", "joe"
        >>> list(dictionary(f"1\t당근\t\tA carrot (vegetable)\t1\t{tail}\t{head}"))
        [('carrot', '당근')]
        >>> list(dictionary(f"2\t가다\t\tTo go, to leave for\t2\t{tail}\t{head}"))
        [('go', '가다'), ('leave for', '가다')]
        >>> list(dictionary(f"3\t부탁하다\t\tAsk sb a favor\t2\t{tail}\t{head}"))
        [('ask somebody a favor', '부탁하다')]
        >>> list(dictionary(f"4\t월요일\t\tMonday\t1\t{tail}\t{head}"))
        [('Monday', '월요일')]
        >>> list(dictionary(f"5\t설악산\t\tFamous mountain\t7\t{tail}\t{head}"))
        []
    """
    for line in dump.splitlines():
        columns = line.split("\t")
        if len(columns) != 11 or not re.fullmatch(r"[가-힣 ]+", korean := columns[1].strip()):
            continue
        for meaning in re.split(r"[;,/]| or ", re.sub(r"\([^)]*\)", "", columns[3])):
            english = re.sub(r"^(?:an?|the|to|be) ", "", meaning.strip(" ."), flags=re.IGNORECASE)
            if columns[4] != NAME and not re.match("[A-Z]+[a-z]*[A-Z]", english):  # a TV stays one
                english = english[:1].lower() + english[1:]
            english = CAPITAL.sub(lambda word: word[0].capitalize(), english)
            english = " ".join(SHORT.get(word, word) for word in english.split())
            if (columns[4] == NAME and not english.istitle()) or "surrounding" in english:
                continue
            if re.fullmatch(r"[A-Za-z' -]+", english) and len(english.split()) <= LONGEST:
                yield english, korean


def emoji_names(path: Path) -> Iterator[Pair]:
    """Read the names of the emoji that models are trained on, each without its skin tone."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["name_en", "name_ko", "split"])
    for english, korean, split in zip(*(each.to_pylist() for each in table.columns), strict=True):
        if split == "train" and "skin tone" not in english and ":" not in english:
            yield english, korean
