"""Translate the everyday sentences of benchmarks/everyday, and shuffle them for people to judge.

python scripts/everyday.py english german en-de multi30k-en-de --sheet sheet.tsv

prints every source with the human translation and each model's, and writes a sheet of
number, source, translation in random order; key.tsv beside it says who wrote which number.
"""

import argparse
from pathlib import Path
from random import Random
from typing import Any

import manyheads

FOLDER = Path(__file__).parents[1] / "benchmarks" / "everyday"


def main() -> None:
    """Translate, print, and write the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="column of the sources")
    parser.add_argument("target", help="column of the human translations")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--table", help="file of benchmarks/everyday, the column of the sources")
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    table = FOLDER / f"{given.table or given.source}.tsv"
    header, *lines = table.read_text(encoding="utf-8").splitlines()
    columns = header.split("\t")
    rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in lines]
    sources = [row[given.source] for row in rows]
    written = {"human": [row[given.target] for row in rows]}
    for name in given.models:
        translator: Any = manyheads.load(name)
        written[name] = [best.text for best, *_ in translator.translate(sources)]
    for number, source in enumerate(sources):
        print(source, *(f"  {name}: {texts[number]}" for name, texts in written.items()), sep="\n")
    if given.sheet is not None:
        entries = [
            (name, source, text)
            for name, texts in written.items()
            for source, text in zip(sources, texts, strict=True)
        ]
        Random(given.seed).shuffle(entries)
        given.sheet.write_text(
            "".join(f"{n}\t{s}\t{t}\n" for n, (_, s, t) in enumerate(entries, 1)), encoding="utf-8"
        )
        given.sheet.with_name("key.tsv").write_text(
            "".join(f"{n}\t{name}\n" for n, (name, *_) in enumerate(entries, 1)), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
