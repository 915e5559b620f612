"""Everyday English sentences with translations, written for this project by language models.

Corpora have few everyday pairs of Korean, and hardly the words of a household in any language. A
row of everyday.tsv has an English sentence and, where somebody wrote it, each translation.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from scripts.data.rows import write_table
from scripts.data.sources import Sources

TABLE = Path(__file__).with_name("everyday.tsv")
LANGUAGES = ("ko", "de", "fr")


def build(_: Sources, root: Path) -> Iterator[Path]:
    """Write everyday/en-ko.tsv, en-de.tsv and en-fr.tsv; no sources are needed."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for language in LANGUAGES:
        pairs = ((row["en"], row[language]) for row in rows if row[language])
        yield write_table(root / "everyday" / f"en-{language}.tsv", dict.fromkeys(pairs))
